"""The whole at one moment, which every page shows a part of, and what all that is read of the store goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from dashboard.day import FINE_MINUTES, MINUTES, STEP, Day, day_of
from dashboard.hosts import Fleet, fleet_of
from dashboard.kept import Kept, KeptWhile
from dashboard.lately import growing, lost_of
from dashboard.mutes import Quiet
from dashboard.overall import UNREACHABLE, LastKnown, Overall
from dashboard.reads.of_store import flaws
from jobs import api
from jobs.api import JobFilter, Noted, Point, Snapshot, Worker
from jobs.api.workflows import NodeCounts
from jobs.core.states import JobState

T = TypeVar("T")

BUDGET_SECONDS = 1.5
"""So long a page waits for the store before it says that it is away."""

HISTORY_BUDGET_SECONDS = 4.0
"""Charts of a month add up tens of thousands of entries."""

LATE_EVERY_SECONDS = 1.0
"""So often it is looked which schedules are late; figures are read several times a second."""

DAY_EVERY_SECONDS = 5.0
"""So often the last 24 hours are added up."""

FLEET_EVERY_SECONDS = 5.0
"""So often it is looked which hosts have gone silent or run old code."""

NOTES_EVERY_SECONDS = 10.0
"""So often it is read how many jobs were ready in the last hour, which hosts note once a minute."""

NOTES_MINUTES = 60

NODES_EVERY_SECONDS = 2.0
"""So often it is looked how the nodes of runs stand."""

TEN_SECONDS = timedelta(seconds=10)
"""The finest step of what happened."""

MUTES_EVERY_SECONDS = 2.0
"""So long another web process may go on shouting about what was muted here."""

QUIET_SECONDS = 60.0
"""So long the number of muted dead jobs is believed while neither mutes nor the numbers of dead jobs change."""

MUTED_LOOKED_AT = 1_000
"""Of so many of the newest dead jobs it is known whether they are muted; the others count as loud."""

_mutes: Kept[Quiet] = Kept(MUTES_EVERY_SECONDS)
_quiet_dead: KeptWhile[int] = KeptWhile(MUTES_EVERY_SECONDS, QUIET_SECONDS)
_late: Kept[tuple[str, ...]] = Kept(LATE_EVERY_SECONDS)
_day: Kept[Day] = Kept(DAY_EVERY_SECONDS)
_fleet: Kept[Fleet] = Kept(FLEET_EVERY_SECONDS)
_notes: Kept[tuple[Noted, ...]] = Kept(NOTES_EVERY_SECONDS)
_nodes: Kept[NodeCounts] = Kept(NODES_EVERY_SECONDS)
_due: Kept[dict[str, datetime]] = Kept(LATE_EVERY_SECONDS)


def forget() -> None:
    last_known.forget()
    for kept in (_late, _day, _fleet, _notes, _nodes, _due, _mutes, _quiet_dead):
        kept.forget()


def forget_mutes() -> None:
    """What is muted is read anew."""
    _mutes.forget()
    _quiet_dead.forget()


def mutes() -> Quiet:
    """What is muted now, read at most every two seconds."""
    return _mutes.read(lambda: Quiet(api.mutes.all()))


def _overall() -> Overall:
    with api.moment(), api.budget(BUDGET_SECONDS):
        snapshot, everything = api.stats.snapshot(), api.scheduler.paused()
        late = _late.read(lambda: tuple(schedule.name for schedule in api.schedules.late()))
        quiet_dead = _dead_that_are_muted(mutes(), {pool.name: pool.dead for pool in snapshot.pools})
        fleet = _fleet.read(lambda: fleet_of(api.workers.list()))
        held = held_hosts(api.workers.list())  # what the snapshot has read
        overdue = _overdue(snapshot)
        unlifted = tuple(
            {"kind": scope.kind, "name": scope.name, **msgspec.to_builtins(pause)}
            for scope, pause in api.scheduler.unlifted()
        )
    names = [pool.name for pool in snapshot.pools]
    day = _as_known(_day, lambda: _read_day(names, snapshot.server_time), HISTORY_BUDGET_SECONDS)
    notes = _as_known(_notes, lambda: tuple(api.stats.backlog(NOTES_MINUTES))) or ()
    nodes = _as_known(_nodes, api.workflows.node_counts)
    grows = growing(notes, snapshot.server_time)
    lost = day.lost if day else {}
    held_all = msgspec.to_builtins(everything) if everything else None
    return Overall(
        pools=tuple(
            pool.as_dict()
            | {
                "enqueued_per_second": pool.enqueued_per_second,
                "parked": pool.parked,
                "hosts_paused": pool.hosts_paused,
                "everything_paused": held_all,
                "lost": lost.get(pool.name, 0),
                "growing": grows.get(pool.name, 0.0),
            }
            for pool in snapshot.pools
        ),
        states={str(state): number for state, number in snapshot.states.items()},
        hosts=snapshot.hosts,
        workers=snapshot.workers,
        late=late,
        quiet_dead=quiet_dead,
        paused=held_all,
        unlifted=unlifted,
        held=held,
        overdue_since=overdue,
        day=day,
        notes=notes,
        silent=fleet.silent,
        outdated=fleet.outdated,
        newest=fleet.newest,
        flaws=flaws(),
        nodes=nodes,
        clock_jumped_at=max((pool.clock_jumped_at for pool in snapshot.pools if pool.clock_jumped_at), default=None),
        at=snapshot.server_time,
    )


def _overdue(snapshot: Snapshot) -> datetime | None:
    """Since when a job is due that no worker host puts in line: asked for only where none is alive."""
    waits = snapshot.states.get(JobState.SCHEDULED, 0) + snapshot.states.get(JobState.RETRY_WAIT, 0)
    if snapshot.workers or not waits:
        return None
    first = min(_due.read(api.stats.next_due).values(), default=None)
    return first if first is not None and first < snapshot.server_time else None


def held_hosts(workers: Sequence[Worker]) -> tuple[dict[str, Any], ...]:
    """The living hosts that are paused, with their pauses."""
    return tuple(
        {"id": host.id, "hostname": host.hostname, **msgspec.to_builtins(host.paused)}
        for host in workers
        if host.is_host and host.alive and host.paused
    )


def _dead_that_are_muted(quiet: Quiet, dead: Mapping[str, int]) -> int:
    """Among the newest: only looked for where something is muted at all, and while mutes and dead jobs change."""

    def look() -> int:
        return quiet.number(api.error_groups(JobFilter(states=(JobState.DEAD,)), sample=MUTED_LOOKED_AT))

    return _quiet_dead.read((quiet.subjects, tuple(dead.items())), look) if quiet else 0


def _as_known(kept: Kept[T], read: Callable[[], T], seconds: float = BUDGET_SECONDS) -> T | None:
    """As it was last known where it cannot be read, or not in time: that is no reason to call the store away."""
    try:
        with api.budget(seconds):
            return kept.read(read)
    except UNREACHABLE:
        return kept.last


def _read_day(pools: Sequence[str], now: datetime) -> Day:
    """``now``: by the store's clock, which all that is read goes by."""
    of_pools = api.stats.points_of_pools(pools, MINUTES, step=STEP)
    points = [point for steps in of_pools.values() for point in steps]

    def since(at: datetime) -> Sequence[Point]:
        begun = at - TEN_SECONDS  # the step in which it came is told whole
        minutes = (now - begun).total_seconds() / 60
        if minutes > FINE_MINUTES:
            return [point for point in points if point.at >= at]
        return [point for point in api.stats.points(None, max(0.0, minutes)) if point.at >= begun]

    return replace(day_of(points, api.workers.releases(MINUTES), since, now), lost=lost_of(of_pools, now))


last_known = LastKnown(_overall)


def overall() -> Overall:
    """Pools, states and worker counts; costs the same whatever the backlog. Never raises for an unreachable store."""
    return last_known.read()


@contextmanager
def asking(seconds: float = 0.0) -> Iterator[None]:
    """A read with a budget. While the store is known to be away it is not asked, so that a page waits for it once."""
    last_known.refuse_while_away()
    with api.budget(seconds or BUDGET_SECONDS):
        yield
