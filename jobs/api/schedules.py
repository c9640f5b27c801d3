"""Schedules: storing them, acting on them, and asking what they would do.

This is the door: what they did is told by ``schedule_status``, what people have them do beside their rhythm is in
``schedule_making``, files are in ``schedule_files``, and their rows in ``schedule_rows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.conf import settings
from django.utils import timezone as clock

from jobs.api import audit, reach
from jobs.api.asynchronous import twin
from jobs.api.forecast import Forecast, aforecast, forecast
from jobs.api.reach import Reach
from jobs.api.schedule_files import Imported, export, import_
from jobs.api.schedule_making import ANY_TIME, BackfillProgress, backfill, backfill_count, run
from jobs.api.schedule_rows import ScheduleNotFound, get, of_people, record_change, saved, shown_fields
from jobs.api.schedule_status import (
    FiringView,
    LateSchedule,
    ScheduleStatus,
    alate,
    anext_to_fire,
    astatus,
    late,
    next_to_fire,
    state_word,
    status,
)
from jobs.core import schedule
from jobs.core.job import iso, moment
from jobs.core.schedule import Preview
from jobs.core.schedule.definition import Definition
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.core.wording import shown
from jobs.engine import get_engine
from jobs.exceptions import ScheduleInvalid, SchedulerError
from jobs.models import Schedule, ScheduleChange
from jobs.services.firing import pool_of

MOST_LISTED = 1_000
"""Schedules of one page, and firings to come of one schedule."""

# --- definitions -----------------------------------------------------------------------------------------------------


def create(*, by: str = "", **fields: Any) -> Schedule:
    """Stores a schedule; fields as in the guide, ``job_type`` a name or a job type, or ``workflow`` the name of a
    stored workflow. It fires within two seconds.

    Raises ScheduleInvalid, UnknownJobType, PayloadInvalid, OptionInvalid with what to write instead.
    """
    if Schedule.objects.filter(name=fields.get("name")).exists():
        raise ScheduleInvalid(f"There is a schedule {fields['name']!r} already.", fix="Update it, or choose a name.")
    return saved(Schedule(), {"timezone": settings.TIME_ZONE, **fields}, by, "schedule.create")


def update(name: str, *, by: str = "", **changes: Any) -> Schedule:
    """Changes fields of a schedule. A new rhythm begins now and makes nothing up; other edits move no firing.

    Raises ScheduleNotFound, WrongState for a schedule of the code, and the errors of ``create``.
    """
    row = of_people(name)
    return saved(row, {**row.fields, **changes}, by, "schedule.update")


def list() -> Sequence[Schedule]:
    """All schedules, by name."""
    return [*Schedule.objects.order_by("name")]


def named(names: Iterable[str]) -> Sequence[Schedule]:
    """Those of these names that there are, by name."""
    return [*Schedule.objects.filter(name__in=[*names]).order_by("name")]


def page(cursor: str | None = None, limit: int = 50) -> tuple[Sequence[Schedule], str | None]:
    """So many schedules by name, after the one that the cursor names, and the cursor of the next page."""
    limit = max(1, min(limit, MOST_LISTED))
    rows = [*Schedule.objects.filter(name__gt=cursor or "").order_by("name")[: limit + 1]]
    return rows[:limit], rows[limit - 1].name if len(rows) > limit else None


def delete(name: str) -> None:
    """Removes a schedule; its jobs stay. ScheduleNotFound, WrongState for a schedule that the code declares."""
    row = of_people(name)
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


def reach_of(names: Iterable[str]) -> Reach:
    """The pools that jobs of these schedules go to, or those of the runs that they start. A name that is none is left
    out.
    """
    return reach.together(_reach(row.definition()) for row in Schedule.objects.filter(name__in=tuple(names)))


def _reach(definition: Definition) -> Reach:
    own = frozenset({pool_of(get_engine(), definition)})
    return reach.together([own, reach.of_workflow(definition.workflow)]) if definition.workflow else own


# --- asking ----------------------------------------------------------------------------------------------------------


def document(row: Schedule, stands: ScheduleStatus) -> dict[str, Any]:
    """The JSON of a schedule as people may see it: its definition, and how it stands."""
    return shown_fields(row.as_dict()) | stands.as_dict()


def shown_document(name: str, count: int = 5) -> dict[str, Any]:
    """The same of one schedule, with so many firings to come and the last ones that were. ScheduleNotFound."""
    row = get(name)
    stands = status([name])[name]
    firings = [firing.as_dict() for firing in stands.firings]
    return {**document(row, stands), "next": [iso(at) for at in coming(name, count)], "firings": firings}


def coming(name: str, count: int) -> Sequence[datetime]:
    """As ``upcoming``; none where the row cannot be a schedule, and says so in its ``error``. ScheduleNotFound."""
    try:
        return upcoming(name, min(count, MOST_LISTED))
    except ScheduleNotFound:
        raise
    except SchedulerError:
        return []


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
anamed = twin(named, uses_database=True)
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
    "anamed",
    "anext_to_fire",
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
    "coming",
    "create",
    "delete",
    "document",
    "export",
    "forecast",
    "get",
    "import_",
    "late",
    "list",
    "named",
    "next_to_fire",
    "page",
    "pause",
    "preview",
    "reach_of",
    "record_change",
    "resume",
    "revert",
    "run",
    "shown_document",
    "shown_fields",
    "state_word",
    "status",
    "upcoming",
    "update",
]
