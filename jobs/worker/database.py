"""Django's database connections in long-lived threads, treated as a web server treats them around a request.

A connection belongs to the thread that opened it, so each function acts for the calling thread only. Asking Django
whether a thread has any costs more than a small job; so we are told when one opens, and do nothing for a thread that
never did.
"""

from __future__ import annotations

import logging
from threading import get_ident
from time import monotonic
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

log = logging.getLogger("jobs.worker")

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
    """Closes what is broken, older than CONN_MAX_AGE, or left in a strange state by a job. Raises nothing: a driver
    that fails at it must cost no slot its thread."""
    if not _in_use or get_ident() not in _in_use:
        return
    for connection in connections.all(initialized_only=True):
        _close_if_stale(connection)
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


def drop_all() -> None:
    """After an exception was raised in a job from outside, maybe in the middle of a query or of a commit: what is open
    may be in any state, and looks sound."""
    for connection in connections.all(initialized_only=True):
        _drop(connection)
    _in_use.discard(get_ident())


def close_all() -> None:
    """Before a fork, and at the end of a thread."""
    drop_all()
    _looked_after.discard(get_ident())


def _close_if_stale(connection: BaseDatabaseWrapper) -> None:
    try:
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
            return
        log.warning("a job has left a transaction open on the database %s: it is rolled back", connection.alias)
    except Exception:
        log.exception("a connection to the database %s is given up", connection.alias)
    _drop(connection)


def _drop(connection: BaseDatabaseWrapper) -> None:
    """Closes it and forgets what Django knows of it: one that was closed in a transaction opens no new one."""
    try:
        connection.close()
    except Exception:
        log.debug("closing a connection to the database %s failed", connection.alias, exc_info=True)
    del connections[connection.alias]
