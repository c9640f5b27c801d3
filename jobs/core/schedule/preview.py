"""What a schedule would do, before it is stored: its next firings, its words, and what a person should know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

from jobs.core.job import iso
from jobs.core.schedule.expression import HOUR, MINUTE, SECOND, Expression, day_may_come
from jobs.core.schedule.kinds import EARLIEST, LATEST, Cron, Interval, Once, Rule, spelled
from jobs.core.schedule.zones import Change, changes_between, zone_named

_ANEW = {SECOND: "minute", MINUTE: "hour", HOUR: "day"}
_YEAR = timedelta(days=366)
_MINUTE = timedelta(minutes=1)
_LOOKED_AT = 60
"""Firings whose distances tell how close a rule can come to its own last run."""


@dataclass(frozen=True)
class Firing:
    """One firing to come: the same moment in UTC and on the wall of the schedule's zone."""

    utc: datetime
    local: datetime

    def as_dict(self) -> dict[str, str]:
        return {"utc": str(iso(self.utc)), "local": self.local.isoformat(timespec="milliseconds")}


@dataclass(frozen=True)
class Preview:
    """The next firings of a rule. Fewer than were asked for: there are no more."""

    expression: str
    """The cron expression in its one spelling; empty for the other kinds."""
    timezone: str
    items: tuple[Firing, ...]
    description: str
    warnings: tuple[str, ...]
    note: str = ""
    """What the next change of the clocks in the zone means for it; empty where there is none within a year."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON of command line and API."""
        return {
            "items": [item.as_dict() for item in self.items],
            "description": self.description,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, kw_only=True)
class Window:
    """Where in time a schedule may fire at all: from its start on, before its end, so many times (None = any)."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    firings_left: int | None = None

    def firings(self, rule: Rule, moment: datetime) -> Iterator[datetime]:
        """The firings of the rule later than ``moment`` that lie in the window."""
        if self.starts_at is not None and self.starts_at > moment:
            moment = self.starts_at - datetime.resolution
        for at in islice(firings(rule, moment), self.firings_left):
            if self.ends_at is not None and at >= self.ends_at:
                return
            yield at


ALWAYS = Window()


def preview(expression: str, timezone: str, count: int, from_: datetime, *, name: str = "") -> Preview:
    """The next ``count`` firings strictly later than ``from_``. ``name`` is the schedule's, for ``H``.

    Raises ScheduleInvalid for an expression or a zone that no schedule could be stored with.
    """
    return preview_of(Cron(expression, timezone, name=name), timezone, count, from_)


def preview_of(
    rule: Rule,
    timezone: str,
    count: int,
    from_: datetime,
    *,
    window: Window = ALWAYS,
    usual_seconds: float | None = None,
) -> Preview:
    """The next ``count`` firings of any rule later than ``from_``, in words too, and on the wall of ``timezone``.

    ``usual_seconds``: how long one of its jobs usually takes, where that is known: a rule that fires again before that
    is warned of. Raises ScheduleInvalid for a zone that is none.
    """
    zone = zone_named(timezone)
    coming = list(islice(window.firings(rule, from_), max(count, _LOOKED_AT)))
    items = tuple(Firing(at, at.astimezone(zone)) for at in coming[:count])
    warnings = [*_never(items, count), *_about_distance(rule, coming, usual_seconds)]
    if isinstance(rule, Cron):
        warnings += [*_about_expression(rule), *_about_clock(rule, from_)]
    expression = rule.expression if isinstance(rule, Cron) else ""
    return Preview(expression, timezone, items, rule.describe(), tuple(warnings), _note(rule, zone, coming, from_))


def firings(rule: Rule, moment: datetime) -> Iterator[datetime]:
    """All firings of a rule later than ``moment``, one after the other."""
    at = rule.next_after(moment)
    while at is not None:
        yield at
        at = rule.next_after(at)


def _never(items: tuple[Firing, ...], count: int) -> Iterator[str]:
    if not items and count:
        yield "It never fires again."


def _about_distance(rule: Rule, coming: list[datetime], usual_seconds: float | None) -> Iterator[str]:
    if isinstance(rule, Interval) and rule.every < _MINUTE:
        yield f"It fires more often than once a minute: {rule.describe().lower()}."
    closest = min((later - earlier for earlier, later in pairwise(coming)), default=None)
    if closest is not None and usual_seconds is not None and closest.total_seconds() < usual_seconds:
        usual = spelled(timedelta(seconds=round(usual_seconds) or usual_seconds))
        yield (
            f"Its job usually takes {usual} and it fires again after {spelled(closest)}: the next one starts while the "
            "last one runs, unless the overlap rule forbids it."
        )


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


def _note(rule: Rule, zone: ZoneInfo, coming: list[datetime], moment: datetime) -> str:
    """The next change of the clocks that it lives to see, and what then becomes of its times on the wall."""
    change = next(_changes(zone, moment), None)
    if change is None or not coming or isinstance(rule, Once):
        return ""
    way = "forward" if change.is_gap else "back"
    minutes = abs(change.after - change.before) // _MINUTE
    then = (
        "its times on the wall stay as they are"
        if isinstance(rule, Cron)
        else f"it counts real time, so its times on the wall move by {minutes} minutes"
    )
    wall = f"{change.wall_before:%Y-%m-%d, %H:%M}"
    return f"The clocks of {zone.key} are next put {way} on {wall} to {change.wall_after:%H:%M}: {then}."


def _changes(zone: ZoneInfo, moment: datetime) -> Iterator[Change]:
    """The changes of the clocks within a year."""
    if EARLIEST <= moment < LATEST:
        start = moment.astimezone(UTC).replace(tzinfo=None)
        yield from changes_between(zone, start, start + _YEAR)


def _about_clock(cron: Cron, moment: datetime) -> Iterator[str]:
    """What the changes of the clocks within a year do to it, where it is not what happens to every hour."""
    if cron.parsed.is_wildcard and cron.parsed.hour.is_full:
        return
    for change in _changes(cron.zone, moment):
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
