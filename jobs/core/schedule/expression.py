"""A cron expression as it is understood: the values of each field, and the days that they name together.

``reading`` makes it of text. Firing, preview and description all work on it, so they cannot understand the same text in
two ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

LAST = -1
"""As the ``nth`` of a weekday: its last one in the month."""


# --- What an expression is made of ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """What one field counts: its name, its bounds, the words that may stand for numbers."""

    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def hash_high(self) -> int:
        """The largest value ``H`` may draw: a day that every month has."""
        return 28 if self is DAY else self.high

    def spelled(self, value: int, *, like: str) -> str:
        """The value as a word where ``like`` is one, else as a number."""
        return self.words[value - self.low] if like in self.words else str(value)


SECOND = Scale("second", 0, 59)
MINUTE = Scale("minute", 0, 59)
HOUR = Scale("hour", 0, 23)
DAY = Scale("day of the month", 1, 31)
MONTH = Scale("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
WEEKDAY = Scale("weekday", 0, 6, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
SCALES = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True)
class Term:
    """One item of a field's list, and the values it stands for.

    Instead of values, a day may be the ``last`` of the month or the workday ``nearest`` to a day, and a weekday the
    ``nth`` of the month (``LAST`` for the last).
    """

    text: str
    values: tuple[int, ...] = ()
    last: bool = False
    nearest: int | None = None
    nth: int | None = None

    @property
    def is_special(self) -> bool:
        return self.last or self.nearest is not None or self.nth is not None


@dataclass(frozen=True)
class Field:
    """One field: its terms, and the text as it is stored."""

    scale: Scale
    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        return ",".join(term.text for term in self.terms)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """What the plain terms stand for, each once, in order."""
        return tuple(sorted({value for term in self.terms if not term.is_special for value in term.values}))

    @property
    def starts_with_star(self) -> bool:
        return self.text.startswith("*")

    @property
    def is_full(self) -> bool:
        return len(self.values) == self.scale.size

    def matches_day(self, day: int, weekday: int, length: int) -> bool:
        """Whether a day of a month of ``length`` days fits this field, which is one of the two day fields."""
        return any(_term_matches(self.scale, term, day, weekday, length) for term in self.terms)


@dataclass(frozen=True)
class Expression:
    """A cron expression that was understood. ``text`` is the one spelling it is stored in."""

    text: str
    fields: tuple[Field, ...]
    has_seconds: bool

    @property
    def second(self) -> Field:
        return self.fields[0]

    @property
    def minute(self) -> Field:
        return self.fields[1]

    @property
    def hour(self) -> Field:
        return self.fields[2]

    @property
    def day(self) -> Field:
        return self.fields[3]

    @property
    def month(self) -> Field:
        return self.fields[4]

    @property
    def weekday(self) -> Field:
        return self.fields[5]

    @property
    def is_wildcard(self) -> bool:
        """Whether it follows the clock through a time change, instead of firing each wall-clock time once."""
        return self.minute.starts_with_star or self.hour.starts_with_star

    @property
    def either_day(self) -> bool:
        """Whether one of the two day fields is enough: cron's rule where both are restrictions."""
        return not (self.day.starts_with_star or self.weekday.starts_with_star)

    @property
    def is_hashed(self) -> bool:
        """Whether it holds an ``H``, so that its times depend on the name of the schedule."""
        return any(term.text.startswith("H") for field in self.fields for term in field.terms)


# --- Whether a day can be --------------------------------------------------------------------------------------------

_LENGTHS = ((), (31,), (28, 29), (31,), (30,), (31,), (30,), (31,), (31,), (30,), (31,), (30,), (31,))
"""How many days each month may have; January is 1."""


def may_ever_fire(expression: Expression) -> bool:
    """Whether some day of some year fits: within 400 years each month begins on each weekday."""
    lengths = {length for month in expression.month.values for length in _LENGTHS[month]}
    kinds_of_month = ((length, first) for length in sorted(lengths, reverse=True) for first in range(7))
    return any(_day_fits(expression, length, first) for length, first in kinds_of_month)


def _day_fits(expression: Expression, length: int, first_weekday: int) -> bool:
    fits = any if expression.either_day else all
    for day in range(1, length + 1):
        weekday = (first_weekday + day - 1) % 7
        if fits(field.matches_day(day, weekday, length) for field in (expression.day, expression.weekday)):
            return True
    return False


def day_may_come(expression: Expression) -> bool:
    """Whether the day of the month, taken alone, comes in one of the months: the 31st never does in June."""
    if any(term.is_special for term in expression.day.terms):
        return True
    return min(expression.day.values) <= max(max(_LENGTHS[month]) for month in expression.month.values)


def _term_matches(scale: Scale, term: Term, day: int, weekday: int, length: int) -> bool:
    if term.last:
        return day == length
    if term.nearest is not None:
        return day == _nearest_workday(term.nearest, day, weekday, length)
    if term.nth is not None:
        return weekday in term.values and (day + 7 > length if term.nth == LAST else (day - 1) // 7 == term.nth - 1)
    return (weekday if scale is WEEKDAY else day) in term.values


def _nearest_workday(wanted: int, day: int, weekday: int, length: int) -> int:
    """The day from Monday to Friday nearest to ``wanted`` in a month that has ``weekday`` on ``day``."""
    wanted = min(wanted, length)
    match (weekday + wanted - day) % 7:
        case 6:
            return wanted - 1 if wanted > 1 else 3
        case 0:
            return wanted + 1 if wanted < length else length - 2
        case _:
            return wanted
