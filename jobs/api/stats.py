"""Numbers about the whole system. Each costs the same whatever the backlog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hmac import compare_digest
from typing import Any

from jobs.api.asynchronous import twin
from jobs.conf import get_settings
from jobs.core.figures import Figures
from jobs.engine import Noted, Point, Snapshot, get_engine


def snapshot() -> Snapshot:
    """Everything at one moment. Its ``version`` changes when any number does."""
    return get_engine().stats.snapshot()


def types() -> dict[str, dict[str, int]]:
    """Job type → figure (see ``jobs.core.figures.COUNTED``) → total since ever, where it is not 0."""
    return get_engine().stats.types()


def series(
    pool: str | None = None, minutes: float = 60, *, type: str | None = None, step: int | None = None
) -> list[dict[str, Any]]:
    """What a pool (or all, or one job type) did lately, oldest first, without the steps in which nothing happened.

    Steps of 10 seconds are kept for a day, of 300 for 30 days; ``step`` chooses, None: by how far back it goes.
    """
    return get_engine().stats.series(pool, minutes, type=type, step=step)


def points(
    pool: str | None = None, minutes: float = 60, *, type: str | None = None, step: int | None = None
) -> list[Point]:
    """The same as ``series`` with figures that add up (``jobs.core.figures``), for longer steps."""
    return get_engine().stats.points(pool, minutes, type=type, step=step)


def points_of_pools(pools: Sequence[str], minutes: float = 60, *, step: int | None = None) -> dict[str, list[Point]]:
    """The same for each of these pools, in as few round trips as for one."""
    return get_engine().stats.points_of_pools(pools, minutes, step=step)


def by_pool_and_type() -> dict[str, dict[str, Figures]]:
    """Pool → job type → all that was ever counted, with histograms of waiting and running."""
    return get_engine().stats.by_pool_and_type()


def durations(pool: str | None = None, minutes: float = 60, *, type: str | None = None) -> dict[str, Any]:
    """How long jobs waited and ran over the last ``minutes``: ``wait`` and ``run``, each with count, mean, p50, p95 and
    p99 in seconds. A quantile is at most 4.4 % (or 1 ms) from the true value."""
    return get_engine().stats.durations(pool, minutes, type=type)


def backlog(minutes: float = 60) -> list[Noted]:
    """How many jobs were ready in each pool, oldest first: by the minute over a day, by the half hour beyond.

    Worker hosts write the notes; of times when none ran there is none.
    """
    return get_engine().backlog.notes(minutes)


def next_due() -> dict[str, datetime]:
    """State (``scheduled``, ``retry_wait``) → when the first of its jobs is due; a state without any is left out."""
    return get_engine().partitions.next_due()


def is_metrics_token(token: str) -> bool:
    """Whether it is the one of ``SCHEDULER["METRICS_TOKEN"]``; compared in the same time however much of it fits."""
    wanted = get_settings().metrics_token
    return bool(wanted) and compare_digest(token.encode(), wanted.encode())


asnapshot = twin(snapshot)
atypes = twin(types)
aby_pool_and_type = twin(by_pool_and_type)
adurations = twin(durations)
aseries = twin(series)
apoints = twin(points)
apoints_of_pools = twin(points_of_pools)
abacklog = twin(backlog)
anext_due = twin(next_due)
