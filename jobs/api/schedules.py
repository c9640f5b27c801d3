"""Schedules: storing them, acting on them, and asking what they would do. What they did is in ``schedule_status``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.utils import timezone as clock

from jobs.api import audit, producer
from jobs.api.asynchronous import twin
from jobs.api.forecast import Forecast, aforecast, forecast
from jobs.api.handle import JobHandle
from jobs.api.redaction import shown_value
from jobs.api.schedule_status import FiringView, LateSchedule, ScheduleStatus, alate, astatus, late, status
from jobs.core import schedule
from jobs.core.job import EnqueueRequest, moment
from jobs.core.schedule import Preview
from jobs.core.schedule.definition import FIELDS, Definition, definition_of
from jobs.core.schedule.load import count
from jobs.core.schedule.plan import KEPT_JOBS, Plan, milliseconds_of
from jobs.core.wording import did_you_mean, shown
from jobs.engine import Engine, get_engine
from jobs.engine.schedules import Firing, Record, firing_id
from jobs.exceptions import OptionInvalid, ScheduleInvalid, SchedulerError, WrongState
from jobs.models import Schedule, ScheduleChange
from jobs.models.schedule import target_problems
from jobs.registry import JobType as RegisteredType
from jobs.services.firing import Request, pool_of, request

MOST_BACKFILLED = 100_000
"""Jobs of one backfill. More is a range or a schedule that was mistaken for another."""
BACKFILL_BATCH = 100
ANY_TIME = 2**53


class ScheduleNotFound(SchedulerError):
    """There is no schedule of this name."""

    code = "schedule_not_found"


class BackfillProgress(NamedTuple):
    """How far a backfill is. ``there``: firings that have a job already, or had one lately."""

    made: int
    there: int
    total: int
    until: datetime | None = None
    """The latest nominal time that was dealt with."""


class Imported(NamedTuple):
    """Names by what became of them."""

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    skipped: list[str]
    """They belong to the code."""


# --- definitions -----------------------------------------------------------------------------------------------------


def create(*, by: str = "", **fields: Any) -> Schedule:
    """Stores a schedule; fields as in the guide, ``job_type`` a name or a job type, or ``workflow`` the name of a
    stored workflow. It fires within two seconds.

    Raises ScheduleInvalid, UnknownJobType, PayloadInvalid, OptionInvalid with what to write instead.
    """
    if Schedule.objects.filter(name=fields.get("name")).exists():
        raise ScheduleInvalid(f"There is a schedule {fields['name']!r} already.", fix="Update it, or choose a name.")
    return _saved(Schedule(), {"timezone": settings.TIME_ZONE, **fields}, by, "schedule.create")


def update(name: str, *, by: str = "", **changes: Any) -> Schedule:
    """Changes fields of a schedule. A new rhythm begins now and makes nothing up; other edits move no firing.

    Raises ScheduleNotFound, WrongState for a schedule of the code, and the errors of ``create``.
    """
    row = _of_people(name)
    return _saved(row, {**row.fields, **changes}, by, "schedule.update")


def get(name: str) -> Schedule:
    """The schedule. ScheduleNotFound with the nearest name."""
    row = Schedule.objects.filter(name=name).first()
    if row is None:
        names = Schedule.objects.values_list("name", flat=True)[:1000]
        raise ScheduleNotFound(f"There is no schedule {shown(name)}.", fix=did_you_mean(str(name), names))
    return row


def list() -> Sequence[Schedule]:
    """All schedules, by name."""
    return [*Schedule.objects.order_by("name")]


def delete(name: str) -> None:
    """Removes a schedule; its jobs stay. ScheduleNotFound, WrongState for a schedule that the code declares."""
    row = _of_people(name)
    before = row.snapshot()
    row.delete()
    record_change("schedule.delete", name, before, {})


def pause(name: str, *, by: str = "", reason: str = "") -> Schedule:
    """From now on its firings are recorded as skipped, and never made up. ScheduleNotFound."""
    row = get(name)
    row.pause(by=by or audit.actor().who, reason=reason)
    row.save()
    audit.record("schedule.pause", name, reason=reason)
    return row


def resume(name: str, *, by: str = "") -> Schedule:
    """Ends the pause. ScheduleNotFound; no error where it was not paused."""
    row = get(name)
    row.resume(by=by or audit.actor().who)
    row.save()
    audit.record("schedule.resume", name)
    return row


def changes(name: str) -> Sequence[ScheduleChange]:
    """Who made it what it is, newest first; also of a schedule that was deleted."""
    return [*ScheduleChange.objects.filter(name=name)]


def revert(name: str, change_id: int, *, by: str = "") -> Schedule:
    """Makes the definition what it was from this change on. ScheduleNotFound; its pause stays as it is."""
    change = ScheduleChange.objects.filter(name=name, pk=change_id).first()
    if change is None:
        raise ScheduleNotFound(f"The schedule {shown(name)} has no change {change_id}.", fix="See its history.")
    fields = {field: value for field, value in change.fields.items() if field != "name"}
    return update(name, by=by, **fields)


def _of_people(name: str) -> Schedule:
    row = get(name)
    if row.owner == Schedule.Owner.CODE and row.enabled:
        raise WrongState(
            f"The schedule {name!r} is declared in the code.",
            fix="Change it there, or pause it.",
            state="code-owned",
        )
    return row


def _saved(row: Schedule, fields: Mapping[str, Any], by: str, action: str) -> Schedule:
    given = dict(fields)
    if isinstance(given.get("job_type"), RegisteredType):
        given["job_type"] = given["job_type"].name
    definition = definition_of(given)
    _check_target(definition)
    before = {} if row._state.adding else row.snapshot()
    for name in FIELDS:
        setattr(row, name, getattr(definition, name))
    row.changed_by = by or audit.actor().who
    try:
        row.save()
    except ValidationError as error:
        raise ScheduleInvalid(" ".join(error.messages)) from None
    record_change(action, row.name, before, row.snapshot())
    return row


def _check_target(definition: Definition) -> None:
    for problem in target_problems(definition.as_dict()).values():
        raise problem


def record_change(action: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Writes into the audit log what differs between two snapshots of a schedule; an empty one: it was not there.

    Entries are kept for ever and read by many: arguments that the job type redacts are masked.
    """
    changed = [field for field in after or before if before.get(field) != after.get(field)]
    audit.record(action, name, before=_told(before, changed), after=_told(after, changed))


def _told(snapshot: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    visible = shown_fields(snapshot)
    return {field: visible[field] for field in fields if field in visible}


def shown_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a schedule as people may see them: arguments that the job type redacts are masked."""
    if "payload" not in fields:
        return dict(fields)
    return {**fields, "payload": shown_value(str(fields.get("job_type")), fields["payload"])}


def pools_of(names: Iterable[str]) -> frozenset[str]:
    """The pools that jobs of these schedules go to. A name that is none is left out."""
    rows = Schedule.objects.filter(name__in=tuple(names))
    return frozenset(pool_of(get_engine(), row.definition()) for row in rows)


# --- acting ----------------------------------------------------------------------------------------------------------


def run(name: str, *, by: str = "") -> JobHandle:
    """Makes a job now, whatever is paused; its fire time is this moment. The rhythm does not move. ScheduleNotFound."""
    engine, row = get_engine(), get(name)
    now = engine.schedules.server_now_ms()
    wanted = request(engine, row.definition())
    spec = msgspec.structs.replace(wanted.spec, fire_time_ms=now)
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
    return _backfill(get_engine(), row, _nominal_times(row, start, end), total, rate, by)


def _counted(row: Schedule, start: datetime, end: datetime) -> int:
    if start.utcoffset() is None or end.utcoffset() is None:
        raise OptionInvalid("A range needs moments with a time zone.", fix="Give aware datetimes.")
    if end < start:
        raise OptionInvalid("The range ends before it begins.")
    if milliseconds_of(end) > get_engine().schedules.server_now_ms():
        raise OptionInvalid("The range ends in the future: those firings are still to come.")
    total = count(row.stored(), start, end + timedelta(milliseconds=1))
    if total > MOST_BACKFILLED:
        raise OptionInvalid(f"The range holds {total:,} firings.", fix=f"Take it in parts of {MOST_BACKFILLED:,}.")
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
            several = Record(
                due=first, until=done, count=made, at=now, outcome="fired", reason="backfill", by=by or "?"
            )
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


# --- files -----------------------------------------------------------------------------------------------------------


def export(names: Iterable[str] | None = None) -> Sequence[dict[str, Any]]:
    """The definitions as JSON has them, by name; what ``import_`` takes."""
    rows = list() if names is None else [get(name) for name in names]
    return [{name: value for name, value in row.as_dict().items() if name in FIELDS} for row in rows]


def import_(items: Iterable[Mapping[str, Any]], *, by: str = "", dry_run: bool = False) -> Imported:
    """Creates what is new and changes what differs. All of it is checked before the first is stored.

    Raises the errors of ``create``, with the name of the schedule; then nothing is stored.
    """
    wanted = [_checked(item) for item in items]
    names = Counter(definition.name for definition in wanted)
    if twice := [name for name, number in names.items() if number > 1]:
        raise ScheduleInvalid(f"The schedule {shown(twice[0])} stands there twice.", fix="Leave one of them.")
    with transaction.atomic(router.db_for_write(Schedule)):
        return _imported(wanted, by, dry_run)


def _imported(wanted: Iterable[Definition], by: str, dry_run: bool) -> Imported:
    done = Imported([], [], [], [])
    for definition in wanted:
        row = Schedule.objects.filter(name=definition.name).first()
        fields = {name: getattr(definition, name) for name in FIELDS}
        if row is not None and row.owner == Schedule.Owner.CODE:
            done.skipped.append(definition.name)
            continue
        if row is not None and row.fields == fields:
            done.unchanged.append(definition.name)
            continue
        (done.created if row is None else done.changed).append(definition.name)
        if not dry_run:
            try:
                _saved(row or Schedule(), fields, by, "schedule.import")
            except SchedulerError as error:
                raise _named(error, definition.name) from None
    return done


def _checked(item: Mapping[str, Any]) -> Definition:
    try:
        definition = definition_of({"timezone": settings.TIME_ZONE, **item})
        _check_target(definition)
    except SchedulerError as error:
        raise _named(error, item.get("name")) from None
    return definition


def _named(error: SchedulerError, name: Any) -> SchedulerError:
    return type(error)(f"The schedule {shown(name)}: {error}", fix=error.fix)


# --- asking ----------------------------------------------------------------------------------------------------------


def preview(
    expression: str,
    timezone: str | None = None,
    count: int = 5,
    from_: datetime | None = None,
    *,
    name: str = "",
) -> Preview:
    """The next ``count`` firings of a cron expression after ``from_`` (now), its words, and warnings.

    ``timezone`` is an IANA name, by default the project's ``TIME_ZONE``; ``name`` the name of the schedule, from which
    ``H`` draws. Needs no server. Raises ScheduleInvalid with the reason and what to write instead.
    """
    return schedule.preview(
        expression,
        settings.TIME_ZONE if timezone is None else timezone,
        count,
        clock.now() if from_ is None else from_,
        name=name,
    )


def upcoming(name: str, count: int = 5) -> Sequence[datetime]:
    """The next nominal times of a stored schedule, in UTC. ScheduleNotFound."""
    row = get(name)
    plan = Plan(row.stored())
    left = count if row.max_firings is None else min(count, max(0, row.max_firings - row.firings))
    first = plan.next_after(milliseconds_of(datetime.now(UTC)))
    return [] if first is None else [moment(at) for at in islice(plan.between(first, ANY_TIME), left)]


apreview = twin(preview)
acreate = twin(create, uses_database=True)
aupdate = twin(update, uses_database=True)
aget = twin(get, uses_database=True)
alist = twin(list, uses_database=True)
adelete = twin(delete, uses_database=True)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
achanges = twin(changes, uses_database=True)
arevert = twin(revert, uses_database=True)
arun = twin(run, uses_database=True)
abackfill_count = twin(backfill_count, uses_database=True)
aexport = twin(export, uses_database=True)
aimport = twin(import_, uses_database=True)
aupcoming = twin(upcoming, uses_database=True)


async def abackfill(
    name: str, start: datetime, end: datetime, *, rate: float | None = None, by: str = ""
) -> BackfillProgress:
    """The async twin of ``backfill``: all of it; how it ended."""

    def whole() -> BackfillProgress:
        steps = [*backfill(name, start, end, rate=rate, by=by)]
        return steps[-1] if steps else BackfillProgress(0, 0, 0)

    return await twin(whole, uses_database=True)()


__all__ = [
    "BackfillProgress",
    "FiringView",
    "Forecast",
    "Imported",
    "LateSchedule",
    "ScheduleNotFound",
    "ScheduleStatus",
    "abackfill",
    "abackfill_count",
    "achanges",
    "acreate",
    "adelete",
    "aexport",
    "aforecast",
    "aget",
    "aimport",
    "alate",
    "alist",
    "apause",
    "apreview",
    "aresume",
    "arevert",
    "arun",
    "astatus",
    "aupcoming",
    "aupdate",
    "backfill",
    "backfill_count",
    "changes",
    "create",
    "delete",
    "export",
    "forecast",
    "get",
    "import_",
    "late",
    "list",
    "pause",
    "preview",
    "resume",
    "revert",
    "run",
    "status",
    "upcoming",
    "update",
]
