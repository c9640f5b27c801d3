"""Django's database connections in long-lived threads, treated as a web server treats them around a request.

A connection belongs to the thread that opened it, so each function acts for the calling thread only. Asking Django
whether a thread has any costs more than a small job; so we are told when one opens, and do nothing for a thread that
never did.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections
from django.db.backends.signals import connection_created

_thread = threading.local()
_in_async_handlers = False


def adopt_thread() -> None:
    """The calling thread will look after its connections itself, with the functions below."""
    _thread.in_use = False


def _note_use(**_: Any) -> None:
    global _in_async_handlers
    if not hasattr(_thread, "in_use"):  # nobody's thread: Django's, in which async handlers reach the database
        _in_async_handlers = True
    _thread.in_use = True


connection_created.connect(_note_use, dispatch_uid="jobs.worker.database")


def close_stale() -> None:
    """Closes what is broken, older than CONN_MAX_AGE, or left in a strange state by a job."""
    if not getattr(_thread, "in_use", False):
        return
    close_old_connections()
    if not any(connection.connection is not None for connection in connections.all(initialized_only=True)):
        _thread.in_use = False


def seconds_until_stale() -> float | None:
    """How long an idle thread may keep what it has open; None when nothing needs to be closed."""
    if not getattr(_thread, "in_use", False):
        return None
    deadlines = [
        connection.close_at
        for connection in connections.all(initialized_only=True)
        if connection.connection is not None and connection.close_at is not None
    ]
    return max(0.0, min(deadlines) - monotonic()) if deadlines else None


async def close_stale_of_async_handlers() -> None:
    """The same for the one thread in which Django runs what async handlers do with the database."""
    if _in_async_handlers:
        await sync_to_async(close_stale)()


def close_all() -> None:
    """Before a fork, and at the end of a thread."""
    connections.close_all()
