"""Everything the pages read of the engine goes through here: what must be hidden from a reader is hidden in this one
place, and what cannot be read is answered with the last that was known and its age, never with a server error.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
from django.core.signals import setting_changed
from django.db import DatabaseError
from django.dispatch import receiver

from dashboard.day import FINE_MINUTES, MINUTES, STEP, Day, day_of
from dashboard.hosts import Fleet, fleet_of
from dashboard.kept import Kept, KeptWhile
from dashboard.mutes import Quiet
from dashboard.overall import UNREACHABLE, LastKnown, Overall
from jobs import api
from jobs.api import (
    BulkOperation,
    ErrorGroup,
    JobFilter,
    LogPage,
    Noted,
    Page,
    Partition,
    Point,
    PoolSettings,
    Reason,
    Release,
    Scaling,
    Worker,
    run_history,
)
from jobs.api.audit import AuditFilter, AuditRecord
from jobs.api.run_history import DefinitionView
from jobs.api.schedule_history import Entry, history
from jobs.api.schedules import Forecast, ScheduleStatus
from jobs.api.workflows import Comparison, RetryPlan, RunPage, Waiting
from jobs.core.figures import Figures
from jobs.core.fingerprint import fingerprint_of
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.core.workflow import NodeView, RunFacts
from jobs.exceptions import JobNotFound, WrongState

log = logging.getLogger(__name__)

BUDGET_SECONDS = 1.5
"""So long a page waits for the store before it says that it is away."""

LATE_EVERY_SECONDS = 1.0
"""So often it is looked which schedules are late; figures are read several times a second."""

FORECAST_EVERY_SECONDS = 30.0
"""So often it is computed what will fire: it asks every schedule."""

HISTORY_EVERY_SECONDS = 2.0
HISTORY_BUDGET_SECONDS = 4.0
"""Charts of a month add up tens of thousands of entries."""

DIAGNOSIS_EVERY_SECONDS = 15.0
DIAGNOSIS_SECONDS = 5.0
"""So long a check of doctor may take before a page calls that a finding."""

PACE_EVERY_SECONDS = 10.0
"""So often it is read what each pool did lately: as often as the engine closes a step of its series."""

DAY_EVERY_SECONDS = 5.0
"""So often the last 24 hours are added up."""

FLEET_EVERY_SECONDS = 5.0
"""So often it is looked which hosts have gone silent or run old code."""

WORKFLOWS_EVERY_SECONDS = 5.0
"""So often the history of runs is summed up."""

TEN_SECONDS = timedelta(seconds=10)
"""The finest step of what happened."""

LOOKS_AT = 1_000
"""A list looks at so many jobs for those that a filter wants before it answers, and offers to look further: with any
backlog it answers at once."""

NODES_AT_ONCE = 1_000
"""So many nodes of a run are read in one round trip."""


@dataclass(frozen=True)
class Verdict:
    """What a check of doctor found, without the passwords of addresses."""

    check: str
    status: str  # ok, warning, failed or skipped
    detail: str
    setting: str
    fix: str


MUTES_EVERY_SECONDS = 2.0
"""So long another web process may go on shouting about what was muted here."""

QUIET_SECONDS = 60.0
"""So long the number of muted dead jobs is believed while neither mutes nor the numbers of dead jobs change."""

MUTED_LOOKED_AT = 1_000
"""Of so many of the newest dead jobs it is known whether they are muted; the others count as loud."""

_mutes: Kept[Quiet] = Kept(MUTES_EVERY_SECONDS)
_quiet_dead: KeptWhile[int] = KeptWhile(MUTES_EVERY_SECONDS, QUIET_SECONDS)
_workflows: Kept[list[DefinitionView]] = Kept(WORKFLOWS_EVERY_SECONDS)
_late: Kept[tuple[str, ...]] = Kept(LATE_EVERY_SECONDS)
_day: Kept[Day] = Kept(DAY_EVERY_SECONDS)
_fleet: Kept[Fleet] = Kept(FLEET_EVERY_SECONDS)
_forecast: Kept[Forecast] = Kept(FORECAST_EVERY_SECONDS)
_points: dict[tuple[str, int], Kept[list[Point]]] = {}
_diagnosis: Kept[list[Verdict]] = Kept(DIAGNOSIS_EVERY_SECONDS)
_pace: defaultdict[str, Kept[list[Point]]] = defaultdict(lambda: Kept(PACE_EVERY_SECONDS))
_shares: Kept[dict[str, dict[str, Figures]]] = Kept(PACE_EVERY_SECONDS)


def forget() -> None:
    """All that was read: the next page reads it anew."""
    last_known.forget()
    for kept in (_late, _day, _fleet, _workflows, _forecast, _diagnosis, _shares, _mutes, _quiet_dead):
        kept.forget()
    _pace.clear()
    _points.clear()


def forget_mutes() -> None:
    """What is muted is read anew."""
    _mutes.forget()
    _quiet_dead.forget()


def mutes() -> Quiet:
    """What is muted now, read at most every two seconds."""
    return _mutes.read(lambda: Quiet(api.mutes.all()))


def _dead_that_are_muted(quiet: Quiet, dead: Mapping[str, int]) -> int:
    """Among the newest: only looked for where something is muted at all, and while mutes and dead jobs change."""

    def look() -> int:
        return quiet.number(api.error_groups(JobFilter(states=(JobState.DEAD,)), sample=MUTED_LOOKED_AT))

    return _quiet_dead.read((quiet.subjects, tuple(dead.items())), look) if quiet else 0


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting == "SCHEDULER":
        forget()


def _overall() -> Overall:
    with api.budget(BUDGET_SECONDS):
        snapshot, everything = api.stats.snapshot(), api.scheduler.paused()
        late = _late.read(lambda: tuple(schedule.name for schedule in api.schedules.late()))
        quiet_dead = _dead_that_are_muted(mutes(), {pool.name: pool.dead for pool in snapshot.pools})
        fleet = _fleet.read(lambda: fleet_of(api.workers.list()))
    return Overall(
        pools=tuple(pool.as_dict() | {"enqueued_per_second": pool.enqueued_per_second} for pool in snapshot.pools),
        states={str(state): number for state, number in snapshot.states.items()},
        hosts=snapshot.hosts,
        workers=snapshot.workers,
        late=late,
        quiet_dead=quiet_dead,
        paused=msgspec.to_builtins(everything) if everything else None,
        day=_last_day(),
        silent=fleet.silent,
        outdated=fleet.outdated,
        newest=fleet.newest,
        at=snapshot.server_time,
    )


def _last_day() -> Day | None:
    """As it was last known where it cannot be added up in time: that is no reason to call the store away."""
    try:
        with api.budget(HISTORY_BUDGET_SECONDS):
            return _day.read(_read_day)
    except UNREACHABLE:
        return _day.last


def _read_day() -> Day:
    points = api.stats.points(None, MINUTES, step=STEP)

    def since(at: datetime) -> Sequence[Point]:
        begun = at - TEN_SECONDS  # the step in which it came is told whole
        minutes = (datetime.now(UTC) - begun).total_seconds() / 60
        if minutes > FINE_MINUTES:
            return [point for point in points if point.at >= at]
        return [point for point in api.stats.points(None, max(0.0, minutes)) if point.at >= begun]

    return day_of(points, api.workers.releases(MINUTES), since)


last_known = LastKnown(_overall)


def overall() -> Overall:
    """Pools, states and worker counts; costs the same whatever the backlog. Never raises for an unreachable store."""
    return last_known.read()


@contextmanager
def _asking(seconds: float = 0.0) -> Iterator[None]:
    """A read with a budget. While the store is known to be away it is not asked, so that a page waits for it once."""
    last_known.refuse_while_away()
    with api.budget(seconds or BUDGET_SECONDS):
        yield


def _shown(job: Job) -> Job:
    """The job as everybody may see it: its secrets are masked before it reaches a page or a download."""
    return api.shown(job)


def jobs(selection: JobFilter, cursor: str, limit: int) -> Page:
    """One page of the list. OptionInvalid for a cursor that is not one of ours."""
    with _asking():
        page = api.list_jobs(selection, cursor=cursor or None, limit=limit, look_at=LOOKS_AT)
    return msgspec.structs.replace(page, items=[_shown(job) for job in page.items])


def job(job_id: str) -> Job:
    """One job with its attempts, or JobNotFound."""
    with _asking():
        return _shown(api.get_job(job_id))


def job_log(job_id: str) -> LogPage:
    """What the attempts of a job have logged, or JobNotFound."""
    with _asking():
        stored = api.get_job(job_id)
        return api.shown_log(stored, api.job_logs(stored))


def revealed(job_id: str, *, reason: str) -> tuple[Job, LogPage]:
    """The job and its log with nothing masked, and an entry in the audit log; or JobNotFound."""
    with _asking():
        job = api.reveal(job_id, reason=reason)
        return job, api.job_logs(job)


def fingerprint(job_id: str) -> str:
    """Of the error that a job ended with, as it is stored."""
    with _asking():
        return fingerprint_of(api.get_job(job_id).error)


def done_to(job_id: str, limit: int) -> Sequence[AuditRecord] | None:
    """What people did to a job, newest first; None where the audit log cannot be read."""
    try:
        return api.audit.list(AuditFilter(target=job_id), limit=limit).items
    except DatabaseError:
        return None


def why(job: Job) -> Reason | None:
    """Why a job does not run, from what decides; None where it runs, has ended, or is gone by now."""
    if job.is_terminal or job.is_running:
        return None
    with _asking(), suppress(JobNotFound):
        return api.explain(job.id)
    return None


def jobs_by_id(job_ids: Sequence[str]) -> list[Job | None]:
    """Each of the jobs, None where there is none."""
    with _asking():
        return [_shown(job) if job else None for job in api.get_jobs(job_ids)]


def refusal_of_move(job_id: str, pool: str) -> WrongState | None:
    """Why this job cannot be moved to that pool, if that shows before it is asked for. JobNotFound."""
    with _asking():
        return api.bulk.refusal_of_move(api.get_job(job_id), pool)


def count_within(selection: JobFilter, seconds: float) -> tuple[int, bool]:
    """How many match, as far as that can be found out in this time, and whether these are all."""
    last_known.refuse_while_away()
    with api.budget(BUDGET_SECONDS + seconds):
        return api.matching.count_within(selection, seconds)


def bulk_operations() -> list[BulkOperation]:
    """The operations that are kept, newest first."""
    with _asking():
        return api.bulk.newest()


def bulk_operation(id: str) -> BulkOperation:
    """One operation, or BulkNotFound."""
    with _asking():
        return api.bulk.get(id)


def bulk_refusals(id: str, limit: int) -> dict[str, str]:
    """Why it was not done, by job."""
    with _asking():
        return {job: api.redaction.shown_text(why) for job, why in api.bulk.refusals(id, limit).items()}


def error_groups(selection: JobFilter, sample: int) -> list[ErrorGroup]:
    """The newest ``sample`` dead jobs that match, by what they died of."""
    with _asking():
        return api.error_groups(selection, sample=sample, look_at=LOOKS_AT)


def topology() -> Sequence[Partition]:
    """Every partition with what it holds."""
    with _asking():
        return api.topology.list()


def settings() -> list[api.Setting]:
    """The settings in force, secrets masked."""
    return api.settings()


def diagnosis() -> list[Verdict]:
    """What doctor finds, looked at again at most every 15 s. Takes some seconds where something hangs."""

    def look() -> list[Verdict]:
        from jobs.management.diagnosis import diagnose  # system checks and all: nothing else here needs them

        found = diagnose(allowed_seconds=DIAGNOSIS_SECONDS)
        return [
            Verdict(one.check, one.status, api.shown_text(one.detail), one.setting, api.shown_text(one.fix))
            for one in found
        ]

    return _diagnosis.read(look)


def dead_sample(selection: JobFilter, sample: int) -> list[Job]:
    """The newest dead jobs that match, as far as they are among those that are looked at."""
    with _asking():
        return [_shown(job) for job in api.newest_dead(selection, sample, LOOKS_AT)]


def workers() -> list[Worker]:
    """Every worker host and worker that beats or has beaten lately."""
    with _asking():
        return list(api.workers.list())


def releases(minutes: int) -> Sequence[Release]:
    """The deploys of the last minutes, oldest first."""
    with _asking():
        return api.workers.releases(minutes)


def next_to_fire(most: int) -> list[str]:
    """The schedules that fire next, by name."""
    with _asking():
        return api.schedules.next_to_fire(most)


def points(pool: str, minutes: int) -> list[Point]:
    """What a pool (``""``: all of them) did lately. Kept for a while: of a month it is a lot to read."""
    with _asking(HISTORY_BUDGET_SECONDS):
        kept = _points.setdefault((pool, minutes), Kept(HISTORY_EVERY_SECONDS))
        return kept.read(lambda: api.stats.points(pool or None, minutes))


def next_due() -> dict[str, datetime]:
    """State → when the first of its jobs is due."""
    with _asking():
        return api.stats.next_due()


def backlog(minutes: int) -> list[Noted]:
    """How many jobs were ready in each pool lately."""
    with _asking():
        return api.stats.backlog(minutes)


def pace(names: Sequence[str]) -> dict[str, list[Point]]:
    """What each of these pools did in the last hour, read at most every 10 s."""
    with _asking():
        return {name: _pace[name].read(partial(api.stats.points, name, 60)) for name in names}


def types_of(pool: str) -> dict[str, Figures]:
    """Job type → all that was ever counted of it in a pool, read at most every 10 s."""
    with _asking():
        return _shares.read(api.stats.by_pool_and_type).get(pool, {})


def pool_settings(name: str) -> PoolSettings:
    """What was set for a pool, or PoolNotFound."""
    with _asking():
        return api.pools.settings(name)


def scalings(name: str) -> Sequence[Scaling]:
    """What autoscaling decided over a pool, newest first."""
    with _asking():
        return list(reversed(api.pools.scalings(name)))


def run(run_id: str) -> RunFacts:
    """One run of a workflow without its nodes, or RunNotFound."""
    with _asking():
        return api.workflows.get(run_id)


def run_nodes(run: RunFacts) -> list[NodeView]:
    """All nodes of a run, parents first."""
    nodes: list[NodeView] = []
    with _asking():
        while len(nodes) < run.total:
            page = api.workflows.nodes(run.id, nodes[-1].rank + 1 if nodes else 0, NODES_AT_ONCE)
            if not page:
                break
            nodes += page
        return api.shown_nodes(nodes)


def runs(name: str, state: str, cursor: str, limit: int) -> RunPage:
    """Runs, newest first; ``name`` and ``state`` may be empty. OptionInvalid for a cursor that is not one of ours."""
    with _asking():
        return api.workflows.list(name=name or None, state=state or None, cursor=cursor or None, limit=limit)


def workflows() -> Sequence[DefinitionView]:
    """Each workflow that is stored or has run lately, with how it has been doing; kept for some seconds."""
    return _workflows.read(lambda: list(run_history.definitions()))


def run_waiting(run_id: str) -> Sequence[Waiting]:
    """The nodes of a run that wait for a signal or a person."""
    with _asking():
        return api.workflows.waiting(run_id)


def retry_plan(run_id: str, node: str) -> RetryPlan:
    """What a retry from this node (empty: of what failed) would run again. WrongState where nothing can be."""
    with _asking():
        return api.workflows.retry_plan(run_id, node or None)


def comparison(run_id: str, against: str) -> Comparison:
    """The run beside another (empty: the last before it that succeeded). RunNotFound, OptionInvalid: there is none."""
    with _asking():
        return api.workflows.compare(run_id, against or None)


def first_failures(run_ids: Sequence[str]) -> Mapping[str, NodeView]:
    """Run → the first of its nodes that failed."""
    with _asking():
        found = api.workflows.first_failures(run_ids)
        return dict(zip(found, api.shown_nodes(list(found.values())), strict=True))


def schedules() -> Sequence[Any]:
    """All rows of schedules, by name. They are in the database, and need no store."""
    return api.schedules.list()


def schedules_named(names: Sequence[str]) -> Sequence[Any]:
    """The rows of these schedules, of those that there are."""
    return api.schedules.named(names)


def schedule(name: str) -> Any:
    """The row of one schedule, or ScheduleNotFound."""
    return api.schedules.get(name)


def pools_of_schedules(names: Sequence[str]) -> frozenset[str]:
    """The pools that their jobs go to."""
    with _asking():
        return api.schedules.pools_of(names)


def schedule_changes(row: Any, most: int) -> list[Entry]:
    """What was changed in a schedule, newest first, with secrets masked. It is in the database, and needs no store."""
    return history(row, most)


def schedule_status(names: Sequence[str], firings: int) -> dict[str, ScheduleStatus]:
    """How these schedules stand, with so many of their last firings each."""
    with _asking():
        return api.schedules.status(names, firings)


def forecast(*, wait: bool = True) -> Forecast | None:
    """What will fire in the next 24 hours, as it was seen lately. Without ``wait`` only what is known already."""
    if not wait:
        return _forecast.last
    with _asking():
        return _forecast.read(api.schedules.forecast)
