"""Numbers about the whole system. Each costs the same whatever the backlog."""

from __future__ import annotations

from typing import Any

from jobs.api.asynchronous import twin
from jobs.engine import Snapshot, get_engine


def snapshot() -> Snapshot:
    """Everything at one moment. Its ``version`` changes when any number does."""
    return get_engine().stats.snapshot()


def types() -> dict[str, dict[str, int]]:
    """Job type → counter (enqueued, succeeded, failed, retried, dead, cancelled, crashed) → total."""
    return get_engine().stats.types()


def series(pool: str | None = None, minutes: int = 60) -> list[dict[str, Any]]:
    """What a pool (or all) did lately: buckets of 10 seconds, oldest first."""
    return get_engine().stats.series(pool, minutes)


asnapshot = twin(snapshot)
atypes = twin(types)
aseries = twin(series)
