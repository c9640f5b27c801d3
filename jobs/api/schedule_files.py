"""Schedules as files: what ``schedules export`` writes and ``schedules import`` reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db import router, transaction

from jobs.api.redaction import tell_exported
from jobs.api.schedule_rows import check_target, get, saved, shown_fields
from jobs.core.schedule.definition import FIELDS, Definition, definition_of
from jobs.core.wording import shown
from jobs.exceptions import ScheduleInvalid, SchedulerError
from jobs.models import Schedule


class Imported(NamedTuple):
    """Names by what became of them."""

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    skipped: list[str]
    """They belong to the code."""


def export(names: Iterable[str] | None = None) -> Sequence[dict[str, Any]]:
    """The definitions as JSON has them, by name; what ``import_`` takes. What people are not shown stands there in
    full, and who took it is on record.
    """
    rows = [*Schedule.objects.order_by("name")] if names is None else [get(name) for name in names]
    tell_exported("schedule", [row.name for row in rows if shown_fields(row.fields) != row.fields])
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
                saved(row or Schedule(), fields, by, "schedule.import")
            except SchedulerError as error:
                raise _named(error, definition.name) from None
    return done


def _checked(item: Mapping[str, Any]) -> Definition:
    try:
        definition = definition_of({"timezone": settings.TIME_ZONE, **item})
        check_target(definition)
    except SchedulerError as error:
        raise _named(error, item.get("name")) from None
    return definition


def _named(error: SchedulerError, name: Any) -> SchedulerError:
    return type(error)(f"The schedule {shown(name)}: {error}", fix=error.fix)
