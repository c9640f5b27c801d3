"""What people have a schedule do beside its rhythm: a job now, or the jobs of a range of the past."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

import msgspec

from jobs.api import audit, producer
from jobs.api.handle import JobHandle
from jobs.api.schedule_rows import get
from jobs.core import options
from jobs.core.job import EnqueueRequest, moment
from jobs.core.schedule.load import count
from jobs.core.schedule.plan import KEPT_JOBS, Plan, milliseconds_of
from jobs.core.wording import shown
from jobs.engine import Engine, get_engine
from jobs.engine.schedules import Firing, Record, firing_id
from jobs.exceptions import OptionInvalid
from jobs.models import Schedule
from jobs.services.firing import Request, pool_of, request

MOST_BACKFILLED = 100_000
"""Jobs of one backfill. More is a range or a schedule that was mistaken for another."""
BACKFILL_BATCH = 100
ANY_TIME = 2**53


class BackfillProgress(NamedTuple):
    """How far a backfill is. ``there``: firings that have a job already, or had one lately."""

    made: int
    there: int
    total: int
    until: datetime | None = None
    """The latest nominal time that was dealt with."""


def run(name: str, *, by: str = "", id: str | None = None) -> JobHandle:
    """Makes a job now, whatever is paused; its fire time is this moment. The rhythm does not move.

    ``id``: the caller's, so that the same order makes one job. ScheduleNotFound; DuplicateJob, OptionInvalid for an id.
    """
    engine, row = get_engine(), get(name)
    now = engine.schedules.server_now_ms()
    wanted = request(engine, row.definition())
    own = None if id is None else options.check_text("id", id)
    spec = msgspec.structs.replace(wanted.spec, fire_time_ms=now, id=own)
    [made] = producer.submit(EnqueueRequest(spec=spec, payloads=[wanted.payload]))
    who = by or audit.actor().who
    _note(engine, name, Record(due=now, at=now, outcome="fired", job=made.id, reason="run now", by=who))
    audit.record("schedule.run", name, after={"job": made.id})
    return made


def _note(engine: Engine, name: str, record: Record) -> None:
    """In the history, and among the jobs that are asked whether they have ended, where an overlap matters."""
    for _ in range(5):
        [live] = engine.schedules.read([name])
        state = live.state
        if state is not None and record.job:
            state = msgspec.structs.replace(state, recent=(record.job, *state.recent)[:KEPT_JOBS])
        if engine.schedules.note(name, record, seen=live.raw_state, state=state, at=record.at):
            return
    engine.schedules.note(name, record, at=record.at)


def backfill_count(name: str, start: datetime, end: datetime) -> int:
    """How many firings lie between two moments, both included. ScheduleNotFound, OptionInvalid."""
    row = get(name)
    return _counted(row, start, end)


def backfill(
    name: str, start: datetime, end: datetime, *, rate: float | None = None, by: str = ""
) -> Iterator[BackfillProgress]:
    """Makes the jobs of all firings between two moments that have none, oldest first; yields how far it is.

    ``rate``: at most so many jobs a second. May be stopped and started again: what is there is not made twice.
    ScheduleNotFound, OptionInvalid where the range is not past or holds too many.
    """
    if rate is not None and not 0 < rate < float("inf"):
        raise OptionInvalid(f"rate: {shown(rate)} is no number of jobs a second.", fix="Give one above 0, or None.")
    row = get(name)
    total = _counted(row, start, end)
    return _backfill(get_engine(), row, _nominal_times(row, start, end), total, rate, by or audit.actor().who)


def _counted(row: Schedule, start: datetime, end: datetime) -> int:
    if start.utcoffset() is None or end.utcoffset() is None:
        raise OptionInvalid("A range needs moments with a time zone.", fix="Give aware datetimes.")
    if end < start:
        raise OptionInvalid("The range ends before it begins.")
    if milliseconds_of(end) > get_engine().schedules.server_now_ms():
        raise OptionInvalid("The range ends in the future: those firings are still to come.")
    total = _up_to_too_many(row, start.astimezone(UTC), end.astimezone(UTC) + timedelta(milliseconds=1))
    if total > MOST_BACKFILLED:
        raise OptionInvalid(
            f"The range holds over {MOST_BACKFILLED:,} firings.", fix=f"Take it in parts of {MOST_BACKFILLED:,}."
        )
    return total


def _up_to_too_many(row: Schedule, start: datetime, end: datetime) -> int:
    """Counted in growing stretches: a minute's schedule over decades is refused before it fills the memory."""
    stored, total, span = row.stored(), 0, timedelta(days=1)
    start = max(start, row.starts_at or start)
    while start < end and total <= MOST_BACKFILLED:
        until = min(end, start.replace(second=0, microsecond=0) + span)
        total += count(stored, start, until)
        start, span = until, 2 * span
    return total


def _nominal_times(row: Schedule, start: datetime, end: datetime) -> Iterator[int]:
    """Found as they are asked for: a backfill may be left after some of many."""
    plan = Plan(row.stored())
    first = plan.next_after(milliseconds_of(start) - 1)
    return iter(()) if first is None else plan.between(first, milliseconds_of(end))


def _backfill(
    engine: Engine, row: Schedule, nominals: Iterator[int], total: int, rate: float | None, by: str
) -> Iterator[BackfillProgress]:
    definition = row.definition()
    route = engine.topology.route_for(pool_of(engine, definition))
    [live] = engine.schedules.read([row.name], records=engine.settings.firings_kept)
    fired = {record.due for record in live.records if record.outcome == "fired" and record.by is None}
    size = BACKFILL_BATCH if rate is None else max(1, min(BACKFILL_BATCH, int(rate)))
    made = there = first = done = 0
    try:
        while batch := [*islice(nominals, size)]:
            began = time.monotonic()
            wanted = [nominal for nominal in batch if nominal not in fired]
            created = _make(engine, request(engine, definition), {n: firing_id(row.name, n, route) for n in wanted})
            made, there = made + created, there + len(batch) - created
            first, done = first or batch[0], batch[-1]
            yield BackfillProgress(made, there, total, moment(done))
            if rate is not None and made + there < total:
                time.sleep(max(0.0, size / rate - (time.monotonic() - began)))
    finally:
        if made:
            now = engine.schedules.server_now_ms()
            several = Record(due=first, until=done, count=made, at=now, outcome="fired", reason="backfill", by=by)
            _note(engine, row.name, several)
            span = {"from": moment(first), "to": moment(done), "made": made}
            audit.record("schedule.backfill", row.name, after={name: str(value) for name, value in span.items()})


def _make(engine: Engine, wanted: Request, ids: Mapping[int, str]) -> int:
    """Makes the jobs of these nominal times; how many there were not."""
    firings = [_firing(wanted, nominal, job_id) for nominal, job_id in ids.items()]
    if wanted.spec.unique is None:
        return [*engine.schedules.fire(firings, not_after=ANY_TIME).values()].count("created")
    created = 0
    for firing in firings:
        if engine.jobs.find(firing.id) is None:
            [one] = engine.jobs.enqueue(firing.spec, [firing.payload], ids=[firing.id])
            created += not one.existing
    return created


def _firing(wanted: Request, nominal: int, job_id: str) -> Firing:
    spec = msgspec.structs.replace(wanted.spec, fire_time_ms=nominal)
    return Firing(job_id, *producer.led_through(spec, wanted.payload, job_id))
