"""How often a schedule fires in each minute of a stretch: exact, and quick enough to ask all schedules.

Where the clocks of its zone are not changed within the stretch, the values of an expression's fields are put together
as they are; else, and for everything else that is rare, its firings are walked through.
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from jobs.core.schedule.definition import Stored
from jobs.core.schedule.expression import Expression
from jobs.core.schedule.kinds import Cron, Interval
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.core.schedule.zones import changes_between, offset_at

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_PIECE = timedelta(days=5)
"""How much of an expression is counted at once. Longer stretches mostly hold a change of the clocks somewhere."""


def minutes(stored: Stored, start: datetime, end: datetime, *, fired: int = 0) -> list[tuple[int, int]]:
    """The minutes from ``start`` up to ``end`` in which it fires, and how often. In order, as minutes since 1970 (UTC).

    ``fired``: how often it has fired before. Raises ScheduleInvalid.
    """
    plan = Plan(stored)
    definition = stored.definition
    begin = max(start.astimezone(UTC), *(at for at in [definition.starts_at] if at), start.astimezone(UTC))
    finish = min(end.astimezone(UTC), *(at for at in [definition.ends_at] if at), end.astimezone(UTC))
    if finish <= begin or not definition.enabled:
        return []
    if definition.max_firings is not None:
        return _walked(plan, begin, finish, max(0, definition.max_firings - fired))
    if isinstance(plan.rule, Cron):
        return _of_cron(plan, plan.rule, begin, finish)
    if isinstance(plan.rule, Interval) and plan.rule.every < _MINUTE:
        return list(_of_interval(plan.rule, begin, finish))
    return _walked(plan, begin, finish, None)


def count(stored: Stored, start: datetime, end: datetime) -> int:
    """How often it would fire from ``start`` up to ``end``, whatever the number of firings it is limited to."""
    unlimited = msgspec.structs.replace(stored.definition, max_firings=None)
    return sum(number for _, number in minutes(msgspec.structs.replace(stored, definition=unlimited), start, end))


def _walked(plan: Plan, begin: datetime, finish: datetime, most: int | None) -> list[tuple[int, int]]:
    first = plan.next_after(milliseconds_of(begin) - 1)
    walked = plan.between(first, milliseconds_of(finish) - 1) if first is not None else iter(())
    return sorted(Counter(at // 60_000 for at in islice(walked, most)).items())


def _of_cron(plan: Plan, cron: Cron, begin: datetime, finish: datetime) -> list[tuple[int, int]]:
    """Piece by piece: only those around a change of the clocks are walked through."""
    found: list[tuple[int, int]] = []
    while begin < finish:
        # Pieces end with a full minute, so that none is counted in two of them.
        until = min(finish, begin.replace(second=0, microsecond=0) + _PIECE)
        if _is_plain(cron, begin, until):
            found += _of_expression(cron, begin, until)
        else:
            found += _walked(plan, begin, until, None)
        begin = until
    return found


def _is_plain(cron: Cron, begin: datetime, finish: datetime) -> bool:
    """Whether the clocks are not changed around here, and differ by whole minutes from UTC."""
    naive = begin.replace(tzinfo=None), finish.replace(tzinfo=None)
    if any(changes_between(cron.zone, naive[0] - _DAY, naive[1] + _DAY)):
        return False
    return not offset_at(cron.zone, naive[0]).total_seconds() % 60


def _of_expression(cron: Cron, begin: datetime, finish: datetime) -> Iterator[tuple[int, int]]:
    parsed = cron.parsed
    offset = offset_at(cron.zone, begin.replace(tzinfo=None))
    times = [60 * hour + minute for hour in parsed.hour.values for minute in parsed.minute.values]
    seconds = parsed.second.values
    day = (begin + offset).replace(hour=0, minute=0, second=0, microsecond=0)
    first, last = milliseconds_of(begin), milliseconds_of(finish)
    whole_from, whole_until = -(-first // 60_000), last // 60_000
    while day - offset < finish:
        if _fits(parsed, day):
            midnight = milliseconds_of(day - offset) // 60_000
            for time in times:
                at = midnight + time
                if whole_from <= at < whole_until:
                    yield at, len(seconds)
                elif number := sum(first <= 60_000 * at + 1000 * second < last for second in seconds):
                    yield at, number
        day += _DAY


def _fits(parsed: Expression, day: datetime) -> bool:
    if day.month not in parsed.month.values:
        return False
    length = monthrange(day.year, day.month)[1]
    weekday = (day.weekday() + 1) % 7
    fits = any if parsed.either_day else all
    return fits(field.matches_day(day.day, weekday, length) for field in (parsed.day, parsed.weekday))


def _of_interval(rule: Interval, begin: datetime, finish: datetime) -> Iterator[tuple[int, int]]:
    anchor, at = rule.anchor or begin, begin

    def before(moment: datetime) -> int:
        """Firings from the anchor up to but not including this moment."""
        return 0 if moment <= anchor else -((anchor - moment) // rule.every)

    while at < finish:
        minute = at.replace(second=0, microsecond=0)
        following = min(minute + _MINUTE, finish)
        if number := before(following) - before(at):
            yield milliseconds_of(minute) // 60_000, number
        at = following
