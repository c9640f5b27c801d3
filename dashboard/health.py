"""``/livez``: this process answers. ``/readyz``: what it needs answers too: store, database, migrations.

Open to anybody who can reach the port, so both say only which part is wrong, never where it is.
"""

from __future__ import annotations

import time

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from dashboard import reads

MEMORY_SECONDS = 1.0
"""So long an answer is given again without asking, so that a flood of probes costs nothing."""


@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"live": True})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    parts = _remembered()
    ready = all(word == "ok" for word in parts.values())
    return JsonResponse({"ready": ready, **parts}, status=200 if ready else 503)


_memory: tuple[float, dict[str, str]] = (float("-inf"), {})


def _remembered() -> dict[str, str]:
    global _memory
    asked_at, parts = _memory
    if time.monotonic() - asked_at > MEMORY_SECONDS:
        parts = {"store": _store(), **_database()}
        _memory = (time.monotonic(), parts)
    return parts


def _store() -> str:
    return "unreachable" if reads.overall().trouble else "ok"


def _database() -> dict[str, str]:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return {"database": "unreachable", "migrations": "unknown"}
    return {"database": "ok", "migrations": "waiting" if waiting else "ok"}
