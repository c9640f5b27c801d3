"""How schedules stand: what is next, what they did, and which of them should have fired and did not.

All of it is worked out by whoever asks, from what the store holds: a scheduler that is dead cannot hide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any

import msgspec

from jobs.api.asynchronous import twin
from jobs.core.job import Job, iso, moment, moment_or_none
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.core.states import JobState
from jobs.core.workflow import RunFacts
from jobs.engine import Engine, Pause, get_engine
from jobs.engine.batches import batches
from jobs.engine.schedules import Live, Record
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

LATE_MS = 2_000
"""A firing that nobody has taken for as long is late."""

IN_A_QUERY = 1_000
"""Names: a database takes so many in one."""

ANY_TIME_MS = 2**53

OUTCOMES = {
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "failed",
    JobState.CANCELLED: "cancelled",
    JobState.LEASED: "running",
}
"""State of a firing's job → its outcome; of any other, the job waits."""


class FiringView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a schedule's history."""

    due_at: datetime
    """The nominal time; of several that were skipped together, the first."""
    fired_at: datetime
    """When it was dealt with."""
    outcome: str
    """``succeeded``, ``failed``, ``cancelled``, ``running``, ``waiting``, ``skipped``; ``fired``: its job is gone."""
    job_id: str | None = None
    reason: str = ""
    until: datetime | None = None
    count: int | None = 1
    by: str | None = None
    run_seconds: float | None = None

    @property
    def lateness_seconds(self) -> float:
        return (self.fired_at - self.due_at).total_seconds()

    def as_dict(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: iso(value) if isinstance(value, datetime) else value for name, value in shown.items()}


class ScheduleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule at one moment. ``late_seconds``: how long its firing has been due; None, it is not late."""

    name: str
    next_at: datetime | None = None
    late_seconds: float | None = None
    late_why: str = ""
    last: FiringView | None = None
    firings: Sequence[FiringView] = ()
    """Newest first."""
    waiting_for: datetime | None = None
    """The nominal time of a firing that waits until the job before it has ended."""
    usual_seconds: float | None = None
    """The median run time of its last jobs."""
    fired: int = 0
    error: str = ""
    is_finished: bool = False
    """Nothing of it is to come: it fired once, as often as it may, or its time is over."""

    def as_dict(self) -> dict[str, Any]:
        """Beside the definition in JSON."""
        return {
            "next_at": iso(self.next_at),
            "late_seconds": self.late_seconds,
            "late_why": self.late_why,
            "last": self.last.as_dict() if self.last else None,
            "waiting_for": iso(self.waiting_for),
            "usual_seconds": self.usual_seconds,
            "fired": self.fired,
            "error": self.error,
        }


class LateSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that should have fired and did not."""

    name: str
    due_at: datetime
    seconds: float
    why: str


def status(names: Iterable[str], firings: int = 24) -> dict[str, ScheduleStatus]:
    """How these schedules stand, with so many of their last firings; a name without a schedule is left out.

    A bounded number of round trips, whatever the number of schedules. StoreUnavailable.
    """
    wanted = [*names]
    engine = get_engine()
    parts = batches(wanted, limit=IN_A_QUERY)
    rows = {row.name: row for part in parts for row in Schedule.objects.filter(name__in=part)}
    found = dict(zip(wanted, engine.schedules.read(wanted, records=max(1, firings)), strict=True))
    jobs = _jobs(engine, [record.job for live in found.values() for record in live.records if record.job])
    of_workflows = [live for name, live in found.items() if name in rows and rows[name].workflow]
    runs = _runs(engine, [record.job for live in of_workflows for record in live.records if record.job])
    judge = _Judge(engine)
    return {name: _status(rows[name], found[name], jobs, runs, judge) for name in wanted if name in rows}


def state_word(row: Schedule, status: ScheduleStatus | None) -> str:
    """The most important thing to know of how it stands, in the word that it has everywhere: ``paused``, ``disabled``,
    ``cannot fire``, ``late``, ``finished`` or ``on``. ``status``: None, the store does not say."""
    known = status or ScheduleStatus(name=row.name)
    if row.is_paused:
        return "paused"
    if not row.enabled:
        return "disabled"
    if (known.error or row.error) and known.next_at is None:
        return "cannot fire"
    if known.late_seconds is not None:
        return "late"
    return "finished" if known.is_finished else "on"


def late(limit: int = 1000) -> list[LateSchedule]:
    """The schedules that should have fired and did not, the most overdue first.

    Costs no more than those; while the scheduler is paused it may look at every schedule once. StoreUnavailable.
    """
    judge = _Judge(get_engine())
    of_store = judge.engine.schedules
    due = dict(of_store.overdue(judge.now - LATE_MS, limit))
    names = [*due, *(name for name in judge.passed_over(limit) if name not in due)]
    found = []
    for name, live in zip(names, of_store.read(names), strict=True):
        seconds = judge.waits(live)
        if seconds is not None:
            found.append(
                LateSchedule(
                    name=name,
                    due_at=moment(judge.now - round(seconds * 1000)),
                    seconds=seconds,
                    why=judge.why_nobody_fires,
                )
            )
    return sorted(found, key=lambda one: -one.seconds)[:limit]


def next_to_fire(limit: int = 5) -> list[str]:
    """The schedules that fire next, by name; those that are late already come first. StoreUnavailable."""
    return [name for name, _ in get_engine().schedules.overdue(ANY_TIME_MS, limit)]


alate = twin(late)
anext_to_fire = twin(next_to_fire)
astatus = twin(status, uses_database=True)


class _Judge:
    """What is the same for all schedules that one question is about."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now = engine.schedules.server_now_ms()
        pause: Pause | None = engine.pauses.state().everything
        self.paused_since = None if pause is None else milliseconds_of(datetime.fromisoformat(pause.at))
        self.has_hosts = any(worker.alive and worker.is_host for worker in engine.workers.all())

    @property
    def why_nobody_fires(self) -> str:
        if self.paused_since is not None:
            return "the scheduler is paused" + ("" if self.has_hosts else ", and no worker host is alive")
        if not self.has_hosts:
            return "no worker host is alive"
        return "worker hosts are alive, and none of them fires schedules"

    def passed_over(self, limit: int) -> list[str]:
        """Schedules whose firings were skipped since everything was paused: none of them is overdue in the store."""
        return [] if self.paused_since is None else self.engine.schedules.passed_over(self.paused_since, limit)

    def lateness(self, row: Schedule, live: Live) -> tuple[float | None, str]:
        """For how many seconds a firing has been due that nobody fired, and why."""
        if not row.enabled or row.is_paused:
            return None, ""
        if live.state is None or live.kept is None:
            waits = self.now - row.changed_at.timestamp() * 1000
            why = "the store does not have it yet" if self.has_hosts else self.why_nobody_fires
            return (waits / 1000, why) if waits > LATE_MS else (None, "")
        seconds = self.waits(live)
        return seconds, "" if seconds is None else self.why_nobody_fires

    def waits(self, live: Live) -> float | None:
        """For how many seconds it has been due; None: it is not late."""
        if live.kept is None or live.kept.stored.paused or live.state is None or live.state.nominal is None:
            return None
        since = live.state.act_at
        if self.paused_since is not None and live.state.last >= self.paused_since:
            since = min(since, _first_after(live, self.paused_since) or since)
        return (self.now - since) / 1000 if self.now - since > LATE_MS else None


def _first_after(live: Live, at: int) -> int | None:
    """The first nominal time from then on, later than it was made; None also where the schedule cannot fire."""
    assert live.kept is not None
    stored = live.kept.stored
    try:
        return Plan(stored).next_after(max(at - 1, milliseconds_of(stored.created_at)))
    except SchedulerError:
        return None


def _status(
    row: Schedule, live: Live, jobs: dict[str, Job], started: dict[str, RunFacts], judge: _Judge
) -> ScheduleStatus:
    state = live.state
    views = [_view(record, jobs.get(record.job or ""), started.get(record.job or "")) for record in live.records]
    seconds, why = judge.lateness(row, live)
    runs = [view.run_seconds for view in views if view.run_seconds is not None]
    is_live = state is not None and row.enabled
    return ScheduleStatus(
        name=row.name,
        next_at=moment_or_none(state.nominal) if state and is_live else None,
        late_seconds=None if seconds is None else round(seconds, 3),
        late_why=why,
        last=views[0] if views else None,
        firings=views,
        waiting_for=moment(state.held.nominal) if state and state.held else None,
        usual_seconds=round(median(runs), 3) if runs else None,
        fired=max(row.firings, state.firings if state else 0),
        error=(state.error if state and state.error else "") or row.error,
        is_finished=is_live and state is not None and state.nominal is None and state.held is None,
    )


def _view(record: Record, job: Job | None, run: RunFacts | None) -> FiringView:
    """``run``: that the firing started, of a schedule that starts a workflow."""
    outcome = record.outcome
    if outcome == "fired" and job is not None:
        outcome = OUTCOMES.get(job.state, "waiting")
    ran = (job.finished_at - job.started_at).total_seconds() if job and job.finished_at and job.started_at else None
    if run is not None:
        outcome, ran = (run.state if run.is_over else "running"), run.seconds
    return FiringView(
        due_at=moment(record.due),
        fired_at=moment(record.at),
        outcome=outcome,
        job_id=record.job,
        reason=record.reason,
        until=moment_or_none(record.until),
        count=record.count,
        by=record.by,
        run_seconds=ran,
    )


def _runs(engine: Engine, ids: Sequence[str]) -> dict[str, RunFacts]:
    """Runs have the ids of the jobs that started them."""
    found = (run for at in range(0, len(ids), 500) for run in engine.workflows.facts_of(ids[at : at + 500]))
    return {run.id: run for run in found if run is not None}


def _jobs(engine: Engine, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in engine.jobs.get_many(ids) if job is not None}
