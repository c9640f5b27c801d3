"""Django's database connections in long-lived threads, treated as a web server treats them around a request.

A connection belongs to the thread that opened it, so each function acts for the calling thread only. Asking Django
whether a thread has any costs more than a small job; so we are told when one opens, and do nothing for a thread that
never did.
"""

from __future__ import annotations

from threading import get_ident
from time import monotonic
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections
from django.db.backends.signals import connection_created

_in_use: set[int] = set()
"""Identities of threads that opened a connection and have not closed all of theirs again."""

_looked_after: set[int] = set()
"""Identities of threads that call the functions below; the other one is Django's own, where async handlers end up."""


def adopt_thread() -> None:
    """The calling thread, which has just begun, will look after its connections itself, with the functions below."""
    _in_use.discard(get_ident())  # a thread that ended without them had the same identity
    _looked_after.add(get_ident())


def _note_use(**_: Any) -> None:
    _in_use.add(get_ident())


connection_created.connect(_note_use, dispatch_uid="jobs.worker.database")


def close_stale() -> None:
    """Closes what is broken, older than CONN_MAX_AGE, or left in a strange state by a job."""
    if not _in_use or get_ident() not in _in_use:
        return
    close_old_connections()
    if not any(connection.connection is not None for connection in connections.all(initialized_only=True)):
        _in_use.discard(get_ident())


def seconds_until_stale() -> float | None:
    """How long an idle thread may keep what it has open; None when nothing needs to be closed."""
    if not _in_use or get_ident() not in _in_use:
        return None
    deadlines = [
        connection.close_at
        for connection in connections.all(initialized_only=True)
        if connection.connection is not None and connection.close_at is not None
    ]
    return max(0.0, min(deadlines) - monotonic()) if deadlines else None


async def close_stale_of_async_handlers() -> None:
    """The same for the one thread in which Django runs what async handlers do with the database."""
    if not _looked_after.issuperset(_in_use):
        await sync_to_async(close_stale)()


def close_all() -> None:
    """Before a fork, and at the end of a thread."""
    connections.close_all()
    _in_use.discard(get_ident())
    _looked_after.discard(get_ident())
