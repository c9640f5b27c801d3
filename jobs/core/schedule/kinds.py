"""The kinds of schedules: ``cron``, ``interval`` and ``once``. Each answers when it fires next, and says so in words.

A firing is the nominal time: what is answered here depends on nothing but the rule and the moment asked about, so every
machine, before and after any restart, answers the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import ClassVar, TypeAlias
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

from jobs.core.duration import seconds
from jobs.core.job import iso
from jobs.core.schedule.expression import LAST, Expression, Field, Term, day_may_come
from jobs.core.schedule.reading import REMEMBERED, parse
from jobs.core.schedule.zones import changes_between, offset_at, zone_named
from jobs.core.wording import shown
from jobs.exceptions import ScheduleInvalid

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
"""A moment before it counts as this one: no zone had a legal time then."""
LATEST = datetime(9900, 1, 1, tzinfo=UTC)
"""Nothing fires later: the calendar of Python ends soon after it."""
SHORTEST_INTERVAL = 0.1
"""Seconds. What comes faster is one job that works in a loop, not a job each time."""

_SECOND = timedelta(seconds=1)
_LONGEST_CHANGE = timedelta(hours=25)
"""The clocks of no zone were ever moved further than that (a day, across the date line)."""
_YEARS_BETWEEN = 40
"""The longest wait there is: a 29 February on a given weekday, when a century without one lies between."""


# --- Cron ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cron:
    """Fires when a clock on the wall shows a time that the expression names.

    ``expression`` has five fields or six with seconds first, and is kept in one spelling (``5L`` for ``L5``).
    ``timezone`` is an IANA name; without one, a stored schedule takes the project's ``TIME_ZONE``, and one that is
    asked before it is stored counts in UTC. ``name`` is the name of the schedule: ``H`` draws from it.

    Where the clocks are changed, an expression whose minute or hour begins with ``*`` follows them. Every other one
    fires each of its times once: in the gap at the first moment after it, in a repeated stretch the first time.

    Raises ScheduleInvalid, with the reason and what to write instead.
    """

    kind: ClassVar[str] = "cron"

    expression: str
    timezone: str | None = None
    name: str = field(default="", kw_only=True)
    parsed: Expression = field(init=False, repr=False, compare=False)
    zone: ZoneInfo = field(init=False, repr=False, compare=False)
    _walls: _Walls = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed = parse(self.expression, name=self.name)
        object.__setattr__(self, "expression", parsed.text)
        object.__setattr__(self, "parsed", parsed)
        object.__setattr__(self, "zone", zone_named("UTC" if self.timezone is None else self.timezone))
        object.__setattr__(self, "_walls", _walls_of(parsed))

    def bound(self, *, name: str, timezone: str) -> Cron:
        """This rule as the schedule ``name``, in ``timezone`` unless it has its own."""
        return replace(self, name=name, timezone=self.timezone or timezone)

    def next_after(self, moment: datetime) -> datetime | None:
        """The first firing strictly later than ``moment``, in UTC; None if there is none ever again."""
        now = _utc(moment)
        if now >= LATEST:
            return None
        # Firings are at whole seconds: later than the moment is later than its second.
        now = max(now, EARLIEST).replace(microsecond=0, tzinfo=None)
        due = self._next(now)
        return None if due is None else due.replace(tzinfo=UTC)

    def describe(self) -> str:
        """The expression in words: ``At 02:30, Monday through Friday``."""
        # Imported here: its library is slow to load, and workers, who load this module too, describe nothing.
        from jobs.core.schedule.description import describe

        return describe(self.parsed)

    def first_between(self, start: datetime, end: datetime) -> datetime | None:
        """The first time on the wall, from ``start`` up to but not including ``end``, that the expression names."""
        wall = self._walls.after(start - _SECOND)
        return wall if wall is not None and wall < end else None

    def _next(self, now: datetime) -> datetime | None:
        """Goes from one change of the clocks to the next. Between them, wall clock and UTC are one offset apart."""
        once_each = not self.parsed.is_wildcard
        offset = offset_at(self.zone, now)
        passed = now + offset  # times on the wall up to this one are over
        if once_each:
            for recent in changes_between(self.zone, now - _LONGEST_CHANGE, now):
                passed = max(passed, recent.wall_before - _SECOND)
        while wall := self._walls.after(passed):
            if wall - passed > 4 * _LONGEST_CHANGE and not any(changes_between(self.zone, now, now + _LONGEST_CHANGE)):
                # Years may lie between. No change in the middle can bring a time on the wall that is named: go near.
                now = wall - 2 * _LONGEST_CHANGE
                offset = offset_at(self.zone, now)
            change = next(changes_between(self.zone, now, wall - offset), None)
            if change is None:
                return wall - offset
            if once_each and change.is_gap and wall < change.wall_after:
                return change.at
            now, offset = change.at, change.after
            passed = (max(change.wall_before, change.wall_after) if once_each else change.wall_after) - _SECOND
        return None


class _Walls:
    """The times on the wall that an expression names, as a calendar without zone would have them.

    croniter finds them, from the values that the parser found. Where either of the day fields is enough it is asked
    for each alone: together it would join ``#``, ``L`` and ``W`` with the other field in ways of its own.
    """

    def __init__(self, expression: Expression) -> None:
        clock = " ".join(map(_values, (expression.second, expression.minute, expression.hour)))
        month = _values(expression.month)
        day, weekday = _values(expression.day), _values(expression.weekday)
        if expression.either_day:
            pairs = [("*", weekday)]
            if day_may_come(expression):  # croniter would search for the 31 June for decades, at each step
                pairs.append((day, "*"))
        else:
            pairs = [(day, weekday)]
        self._iterators = [
            croniter(
                f"{clock} {day} {month} {weekday}",
                start_time=EARLIEST.timestamp(),
                ret_type=datetime,
                day_or=False,
                second_at_beginning=True,
                max_years_between_matches=_YEARS_BETWEEN,
            )
            for day, weekday in pairs
        ]

    def after(self, wall: datetime) -> datetime | None:
        """The first of them later than ``wall``."""
        found = []
        for iterator in self._iterators:
            try:
                # A copy: an iterator keeps where it is, and the rule may be asked by several threads.
                found.append(copy(iterator).get_next(datetime, start_time=wall))
            except CroniterBadDateError:
                continue
        return min(found, default=None)


_walls_of = lru_cache(maxsize=REMEMBERED)(_Walls)


def _values(field: Field) -> str:
    """A field as the list of its values: there is nothing in it that croniter could read in another way."""
    if field.is_full:
        return "*"
    return ",".join([*map(str, field.values), *(_special(term) for term in field.terms if term.is_special)])


def _special(term: Term) -> str:
    if term.nth is None:
        return term.text  # "L" and "15W"
    return f"L{term.values[0]}" if term.nth == LAST else f"{term.values[0]}#{term.nth}"


# --- Interval ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Interval:
    """Fires every so many seconds of real time, whatever clocks on walls do.

    ``every``: seconds or a timedelta. ``anchor`` is the moment the rhythm is counted from, and the first that may fire;
    a stored schedule has its start there. Without one the rhythm is counted from 1970, so that it is the same
    everywhere. Each firing is computed from the anchor and not from the one before: nothing adds up.
    """

    kind: ClassVar[str] = "interval"

    every: timedelta
    anchor: datetime | None = None

    def __init__(self, every: float | timedelta, anchor: datetime | None = None) -> None:
        length = timedelta(seconds=seconds(every, name="Interval"))
        if length < timedelta(seconds=SHORTEST_INTERVAL):
            raise ScheduleInvalid(
                f"An interval of {shown(every)} is shorter than {SHORTEST_INTERVAL} seconds.",
                fix="Give it in seconds, or let one job do the work of many in a loop.",
            )
        object.__setattr__(self, "every", length)
        object.__setattr__(self, "anchor", None if anchor is None else _utc(anchor))

    def next_after(self, moment: datetime) -> datetime | None:
        """The first firing strictly later than ``moment``, in UTC; None where the calendar ends."""
        now = _utc(moment)
        if self.anchor is not None and now < self.anchor:
            return self.anchor
        start = _EPOCH if self.anchor is None else self.anchor
        try:
            return start + ((now - start) // self.every + 1) * self.every
        except OverflowError:
            return None

    def describe(self) -> str:
        """``Every 5 minutes``, ``Every 1 hour 30 minutes``."""
        return f"Every {spelled(self.every)}"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000), ("millisecond", 1))


def spelled(span: timedelta) -> str:
    """``5 minutes``; a single unit is left uncounted, as in ``every hour``."""
    left = round(span.total_seconds() * 1000)
    parts = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return parts[0].removeprefix("1 ") if len(parts) == 1 else " ".join(parts)


# --- Once ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Once:
    """Fires one time, ``at`` an aware moment."""

    kind: ClassVar[str] = "once"

    at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", _utc(self.at))

    def next_after(self, moment: datetime) -> datetime | None:
        """The moment, in UTC, while it is still to come; then None."""
        return self.at if self.at > _utc(moment) else None

    def describe(self) -> str:
        """``Once at 2026-03-29T01:00:00.000Z``."""
        return f"Once at {iso(self.at)}"


Rule: TypeAlias = Cron | Interval | Once

SCHEDULE_KINDS: dict[str, type[Cron] | type[Interval] | type[Once]] = {
    kind.kind: kind for kind in (Cron, Interval, Once)
}
"""The word a schedule is stored with → the rule it stands for."""


def _utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ScheduleInvalid(
            f"{shown(moment)} is no moment: it does not say how far it is from UTC.",
            fix="Give a datetime with a time zone, such as timezone.now().",
        )
    return moment.astimezone(UTC)
