"""Connections to the database in the threads of services, which live for days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def fresh_connections(*, kept: float = 0.0) -> Iterator[None]:
    """Connections of this thread that are broken or too old are closed, before and after. ``kept``: seconds for which
    one that is opened inside is not too old, whatever CONN_MAX_AGE says: for whoever is back in a moment."""
    _close_old()
    before = [connection.connection for connection in _open()]
    try:
        yield
    finally:
        for connection in _open():
            if connection.close_at is not None and connection.connection not in before:
                connection.close_at = max(connection.close_at, monotonic() + kept)
        _close_old()


def _open() -> list[BaseDatabaseWrapper]:
    return [connection for connection in connections.all(initialized_only=True) if connection.connection is not None]


def _close_old() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
