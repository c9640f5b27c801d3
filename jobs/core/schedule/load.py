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

from jobs.core.job import moment
from jobs.core.schedule.definition import Stored
from jobs.core.schedule.expression import Expression
from jobs.core.schedule.kinds import Cron, Interval
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.core.schedule.zones import changes_between, offset_at

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


def minutes(stored: Stored, start: datetime, end: datetime, *, fired: int = 0) -> list[tuple[datetime, int]]:
    """The minutes from ``start``, a full one, up to ``end`` in which it fires, and how often. In UTC, in order.

    ``fired``: how often it has fired before. Raises ScheduleInvalid.
    """
    plan = Plan(stored)
    definition = stored.definition
    begin = max(start.astimezone(UTC), *(at for at in [definition.starts_at] if at), start.astimezone(UTC))
    finish = min(end.astimezone(UTC), *(at for at in [definition.ends_at] if at), end.astimezone(UTC))
    if definition.max_firings is None and finish > begin:
        if isinstance(plan.rule, Cron) and not _changes(plan.rule, begin, finish):
            return list(_of_expression(plan.rule, begin, finish))
        if isinstance(plan.rule, Interval) and plan.rule.every < _MINUTE:
            return list(_of_interval(plan.rule, begin, finish))
    left = None if definition.max_firings is None else max(0, definition.max_firings - fired)
    first = plan.next_after(milliseconds_of(begin) - 1)
    walked = plan.between(first, milliseconds_of(finish) - 1) if first is not None else iter(())
    counted = Counter(moment(at).replace(second=0, microsecond=0) for at in islice(walked, left))
    return sorted(counted.items())


def _changes(cron: Cron, begin: datetime, finish: datetime) -> bool:
    naive = begin.replace(tzinfo=None), finish.replace(tzinfo=None)
    return any(changes_between(cron.zone, naive[0] - _DAY, naive[1] + _DAY))


def _of_expression(cron: Cron, begin: datetime, finish: datetime) -> Iterator[tuple[datetime, int]]:
    parsed = cron.parsed
    offset = offset_at(cron.zone, begin.replace(tzinfo=None))
    times = [(hour, minute) for hour in parsed.hour.values for minute in parsed.minute.values]
    day = (begin + offset).replace(hour=0, minute=0, second=0, microsecond=0)
    while day - offset < finish:
        if _fits(parsed, day):
            for hour, minute in times:
                at = day + timedelta(hours=hour, minutes=minute) - offset
                count = sum(begin <= at + timedelta(seconds=second) < finish for second in parsed.second.values)
                if count:
                    yield at, count
        day += _DAY


def _fits(parsed: Expression, day: datetime) -> bool:
    if day.month not in parsed.month.values:
        return False
    length = monthrange(day.year, day.month)[1]
    weekday = (day.weekday() + 1) % 7
    fits = any if parsed.either_day else all
    return fits(field.matches_day(day.day, weekday, length) for field in (parsed.day, parsed.weekday))


def _of_interval(rule: Interval, begin: datetime, finish: datetime) -> Iterator[tuple[datetime, int]]:
    anchor, at = rule.anchor or begin, begin

    def before(moment: datetime) -> int:
        """Firings from the anchor up to but not including this moment."""
        return 0 if moment <= anchor else -((anchor - moment) // rule.every)

    while at < finish:
        following = min(at.replace(second=0, microsecond=0) + _MINUTE, finish)
        if count := before(following) - before(at):
            yield at.replace(second=0, microsecond=0), count
        at = following
