"""Connections to the database in the threads of services, which live for days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def fresh_connections() -> Iterator[None]:
    """Connections of this thread that are broken or too old are closed, before and after."""
    _close_old()
    try:
        yield
    finally:
        _close_old()


def _close_old() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
