"""Rows of schedules: found by name, checked, saved, and each change of them told to the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import ValidationError

from jobs.api import audit
from jobs.api.redaction import shown_value
from jobs.core.schedule.definition import FIELDS, Definition, definition_of
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import ScheduleInvalid, SchedulerError, WrongState
from jobs.models import Schedule
from jobs.models.schedule import target_problems
from jobs.registry import JobType as RegisteredType


class ScheduleNotFound(SchedulerError):
    """There is no schedule of this name."""

    code = "schedule_not_found"


def get(name: str) -> Schedule:
    """The schedule. ScheduleNotFound with the nearest name."""
    row = Schedule.objects.filter(name=name).first()
    if row is None:
        names = Schedule.objects.values_list("name", flat=True)[:1000]
        raise ScheduleNotFound(f"There is no schedule {shown(name)}.", fix=did_you_mean(str(name), names))
    return row


def of_people(name: str) -> Schedule:
    """The schedule, if people may change it. ScheduleNotFound, WrongState for one that the code declares."""
    row = get(name)
    if row.owner == Schedule.Owner.CODE and row.enabled:
        raise WrongState(
            f"The schedule {name!r} is declared in the code.",
            fix="Change it there, or pause it.",
            state="code-owned",
        )
    return row


def saved(row: Schedule, fields: Mapping[str, Any], by: str, action: str) -> Schedule:
    """Stores the row with these fields. Raises what ``create`` raises."""
    given = dict(fields)
    if isinstance(given.get("job_type"), RegisteredType):
        given["job_type"] = given["job_type"].name
    definition = definition_of(given)
    check_target(definition)
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


def check_target(definition: Definition) -> None:
    """Raises UnknownJobType, PayloadInvalid, ScheduleInvalid where nothing could be started."""
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
