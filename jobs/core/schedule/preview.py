"""What a schedule would do, before it is stored: its next firings, its words, and what a person should know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from jobs.core.job import iso
from jobs.core.schedule.expression import HOUR, MINUTE, SECOND, Expression, day_may_come
from jobs.core.schedule.kinds import EARLIEST, LATEST, Cron, Rule
from jobs.core.schedule.zones import Change, changes_between

_ANEW = {SECOND: "minute", MINUTE: "hour", HOUR: "day"}
_YEAR = timedelta(days=366)


@dataclass(frozen=True)
class Firing:
    """One firing to come: the same moment in UTC and on the wall of the schedule's zone."""

    utc: datetime
    local: datetime

    def as_dict(self) -> dict[str, str]:
        return {"utc": str(iso(self.utc)), "local": self.local.isoformat(timespec="milliseconds")}


@dataclass(frozen=True)
class Preview:
    """The next firings of a cron expression. Fewer than were asked for: there are no more."""

    expression: str
    timezone: str
    items: tuple[Firing, ...]
    description: str
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of command line and API."""
        return {
            "items": [item.as_dict() for item in self.items],
            "description": self.description,
            "warnings": list(self.warnings),
        }


def preview(expression: str, timezone: str, count: int, from_: datetime, *, name: str = "") -> Preview:
    """The next ``count`` firings strictly later than ``from_``. ``name`` is the schedule's, for ``H``.

    Raises ScheduleInvalid for an expression or a zone that no schedule could be stored with.
    """
    cron = Cron(expression, timezone, name=name)
    items = tuple(Firing(at, at.astimezone(cron.zone)) for at in islice(firings(cron, from_), count))
    warnings = [*_never(items, count), *_about_expression(cron), *_about_clock(cron, from_)]
    return Preview(cron.expression, timezone, items, cron.describe(), tuple(warnings))


def firings(rule: Rule, moment: datetime) -> Iterator[datetime]:
    """All firings of a rule later than ``moment``, one after the other."""
    at = rule.next_after(moment)
    while at is not None:
        yield at
        at = rule.next_after(at)


def _never(items: tuple[Firing, ...], count: int) -> Iterator[str]:
    if not items and count:
        yield "It never fires again."


def _about_expression(cron: Cron) -> Iterator[str]:
    expression = cron.parsed
    seconds = len(expression.second.values)
    if seconds > 1:
        yield f"It fires more often than once a minute: {seconds} times in each minute that fits."
    if expression.is_hashed and not cron.name:
        yield "'H' is drawn from the name of the schedule: these are the times of one without a name."
    if expression.either_day and not day_may_come(expression):
        yield f"The day {expression.day.text!r} is in none of its months: only the weekday decides."
    yield from _uneven_steps(expression)
    if expression.second.values == (0,) and expression.minute.values == (0,) and not expression.is_hashed:
        yield (
            "It fires on the full hour, as most schedules do: 'H' for the minute draws one from the schedule's name, "
            "a jitter spreads it."
        )


def _uneven_steps(expression: Expression) -> Iterator[str]:
    for field in expression.fields:
        for term in field.terms:
            base, _, step = term.text.partition("/")
            if base == "*" and step and field.scale in _ANEW and field.scale.size % int(step):
                yield (
                    f"{term.text!r} begins anew with each {_ANEW[field.scale]}: the last step is shorter "
                    f"({field.scale.name} {', '.join(map(str, term.values))})."
                )


def _about_clock(cron: Cron, moment: datetime) -> Iterator[str]:
    """What the changes of the clocks within a year do to it, where it is not what happens to every hour."""
    if cron.parsed.is_wildcard and cron.parsed.hour.is_full:
        return
    if not EARLIEST <= moment < LATEST:
        return
    start = moment.astimezone(UTC).replace(tzinfo=None)
    for change in changes_between(cron.zone, start, start + _YEAR):
        early, late = sorted((change.wall_before, change.wall_after))
        wall = cron.first_between(early, late)
        if wall is not None:
            yield f"{wall:%H:%M} {_effect(cron, change, wall)}"


def _effect(cron: Cron, change: Change, wall: datetime) -> str:
    once_each = not cron.parsed.is_wildcard
    if change.is_gap:
        then = f"it fires at {change.wall_after:%H:%M} instead" if once_each else "it does not fire then"
        return f"does not exist on {wall:%Y-%m-%d} in {cron.zone.key}, where the clocks are put forward: {then}."
    then = "it fires the first time only" if once_each else "it fires both times"
    return f"comes twice on {wall:%Y-%m-%d} in {cron.zone.key}, where the clocks are put back: {then}."
