"""Django's database connections in long-lived threads, treated as a web server treats them around a request.

A connection belongs to the thread that opened it, so each function acts for the calling thread only.
"""

from __future__ import annotations

from time import monotonic

from django.db import close_old_connections, connections

close_stale = close_old_connections
"""Closes the thread's connections that are broken, older than CONN_MAX_AGE, or left in a strange state by a job."""


def seconds_until_stale() -> float | None:
    """How long an idle thread may keep what it has open; None when nothing needs to be closed."""
    deadlines = [
        connection.close_at
        for connection in connections.all(initialized_only=True)
        if connection.connection is not None and connection.close_at is not None
    ]
    return max(0.0, min(deadlines) - monotonic()) if deadlines else None


def close_all() -> None:
    """Before a fork, and at the end of a thread."""
    connections.close_all()
