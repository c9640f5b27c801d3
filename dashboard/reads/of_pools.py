"""What runs the jobs: pools, workers, partitions, their history; the settings in force."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dashboard.kept import Kept, KeptOfEach
from dashboard.reads.whole import HISTORY_BUDGET_SECONDS, asking
from jobs import api
from jobs.api import EndedHost, Noted, Partition, Point, PoolSettings, Release, Scaling, Worker
from jobs.core.figures import Figures

HISTORY_EVERY_SECONDS = 2.0

PACE_EVERY_SECONDS = 10.0
"""So often it is read what each pool did lately: as often as the engine closes a step of its series."""

READINGS_KEPT = 4
"""Of the history of a pool, or of several: a month of a busy one takes 15 MB."""


_points: KeptOfEach[tuple[str, int], list[Point]] = KeptOfEach(HISTORY_EVERY_SECONDS, READINGS_KEPT)
_pace: KeptOfEach[frozenset[str], dict[str, list[Point]]] = KeptOfEach(PACE_EVERY_SECONDS, READINGS_KEPT)
_shares: Kept[dict[str, dict[str, Figures]]] = Kept(PACE_EVERY_SECONDS)


def forget() -> None:
    for kept in (_points, _pace, _shares):
        kept.forget()


def pool_settings(name: str) -> PoolSettings:
    """What was set for a pool, or PoolNotFound."""
    with asking():
        return api.pools.settings(name)


def scalings(name: str) -> Sequence[Scaling]:
    """What autoscaling decided over a pool, newest first."""
    with asking():
        return list(reversed(api.pools.scalings(name)))


def types_of(pool: str) -> dict[str, Figures]:
    """Job type → all that was ever counted of it in a pool, read at most every 10 s."""
    with asking():
        return _shares.read(api.stats.by_pool_and_type).get(pool, {})


def pace(names: Sequence[str]) -> dict[str, list[Point]]:
    """What each of these pools did in the last hour, read at most every 10 s."""
    with asking():
        return _pace.read(frozenset(names), lambda: api.stats.points_of_pools(names))


def points(pool: str, minutes: int) -> list[Point]:
    """What a pool (``""``: all of them) did lately. Kept for a while: of a month it is a lot to read."""
    with asking(HISTORY_BUDGET_SECONDS):
        return _points.read((pool, minutes), lambda: api.stats.points(pool or None, minutes))


def next_due() -> dict[str, datetime]:
    """State → when the first of its jobs is due."""
    with asking():
        return api.stats.next_due()


def backlog(minutes: int) -> list[Noted]:
    """How many jobs were ready in each pool lately."""
    with asking():
        return api.stats.backlog(minutes)


def workers() -> list[Worker]:
    """Every worker host and worker that beats or has beaten lately."""
    with asking():
        return list(api.workers.list())


def ended_hosts() -> Sequence[EndedHost]:
    """The worker hosts that ended in good order within the last hour."""
    with asking():
        return api.workers.ended()


def releases(minutes: int) -> Sequence[Release]:
    """The deploys of the last minutes, oldest first."""
    with asking():
        return api.workers.releases(minutes)


def newest_release(until: datetime | None = None) -> Release:
    """The last deploy, not after ``until``. OptionInvalid where none is known."""
    with asking():
        return api.workers.newest_release(until)


def topology(pool: str | None = None) -> Sequence[Partition]:
    """Every partition with what it holds, of all pools or of one."""
    with asking():
        return api.topology.list(pool)


def settings() -> list[api.Setting]:
    """The settings in force, secrets masked."""
    return api.settings()
