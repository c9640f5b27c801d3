"""The clock on the wall: when cron expressions fire, found by looking at it once a minute.

It states the rule and knows nothing of the code that it judges. Expressions have five plain fields.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
YEARS = range(1973, 2038)
"""Of changes that are looked at. Before, the clocks of Liberia were 44 minutes and 30 seconds behind UTC."""


@cache
def numbers(field: str, low: int, high: int) -> frozenset[int]:
    """The values of a plain field."""
    found: set[int] = set()
    for item in field.split(","):
        base, _, step = item.partition("/")
        start, _, stop = (f"{low}-{high}" if base == "*" else base).partition("-")
        found.update(range(int(start), int(stop or start) + 1, int(step or 1)))
    return frozenset(found)


def day_fits(field: str, day: datetime) -> bool:
    return any(day_item_fits(item, day) for item in field.split(","))


def day_item_fits(item: str, day: datetime) -> bool:
    length = calendar.monthrange(day.year, day.month)[1]
    if item == "L":
        return day.day == length
    if item.endswith("W"):
        wanted = day.replace(day=min(int(item[:-1]), length))
        workdays = [day.replace(day=n) for n in range(1, length + 1) if day.replace(day=n).weekday() < 5]
        return day == min(workdays, key=lambda other: (abs(other - wanted), other))
    return day.day in numbers(item, 1, 31)


def weekday_fits(field: str, day: datetime) -> bool:
    return any(weekday_item_fits(item, day) for item in field.split(","))


def weekday_item_fits(item: str, day: datetime) -> bool:
    weekday, length = day.isoweekday() % 7, calendar.monthrange(day.year, day.month)[1]
    if item.endswith("L"):
        return weekday == int(item[0]) and day.day > length - 7
    if "#" in item:
        return weekday == int(item[0]) and (day.day + 6) // 7 == int(item[2])
    return weekday in {number % 7 for number in numbers(item, 0, 7 if "7" in item else 6)}


@cache
def date_fits(dates: str, day: datetime) -> bool:
    """Whether the last three fields name this date."""
    of_month, month, weekday = dates.split()
    if day.month not in numbers(month, 1, 12):
        return False
    fit = [day_fits(of_month, day), weekday_fits(weekday, day)]
    return all(fit) if of_month[0] == "*" or weekday[0] == "*" else any(fit)


def names(expression: str, wall: datetime) -> bool:
    """Whether the expression names this time on the wall."""
    minute, hour, dates = expression.split(maxsplit=2)
    if wall.minute not in numbers(minute, 0, 59) or wall.hour not in numbers(hour, 0, 23):
        return False
    return date_fits(dates, wall.replace(hour=0, minute=0))


@lru_cache(maxsize=2000)
def minutes(zone: str, start: datetime, count: int) -> list[tuple[datetime, datetime]]:
    """Every minute from ``start``: the moment, and what the clocks show then."""
    moments = [start + MINUTE * n for n in range(count)]
    return [(moment, moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for moment in moments]


def walk(expression: str, zone: str, start: datetime, count: int) -> list[datetime]:
    """The firings after ``start``, by the rule itself: look at the clock on the wall once a minute."""
    fields = expression.split()
    follows_the_clock = fields[0][0] == "*" or fields[1][0] == "*"
    # It begins three hours early, so that what is shown again at the beginning is known.
    seen, *rest = minutes(zone, start - timedelta(hours=3), 3 * 60 + count)
    highest, fired = seen[1], []
    for moment, wall in rest:
        if moment > start:
            skipped = [highest + MINUTE * n for n in range(1, (wall - highest) // MINUTE)]
            if follows_the_clock:
                fires = names(expression, wall)
            else:
                fires = wall > highest and any(names(expression, each) for each in [*skipped, wall])
            if fires:
                fired.append(moment)
        highest = max(highest, wall)
    return fired


@lru_cache(maxsize=2000)
def changes(name: str, year: int) -> list[datetime]:
    """The moments of a year at which the clocks of the zone are changed."""
    zone = ZoneInfo(name)
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(366)]
    offsets = [day.astimezone(zone).utcoffset() for day in days]
    return [
        next(
            early + MINUTE * n
            for n in range(1, 24 * 60 + 1)
            if (early + MINUTE * n).astimezone(zone).utcoffset() != before
        )
        for (early, before), (_, after) in pairwise(zip(days, offsets, strict=True))
        if before != after
    ]


def kind_of_change(zone: str, change: datetime) -> tuple[time, timedelta]:
    """When on the wall, and how far the clocks are moved."""
    before, after = (moment.astimezone(ZoneInfo(zone)) for moment in (change - MINUTE, change))
    return (before + MINUTE).time(), after.utcoffset() - before.utcoffset()  # type: ignore[operator]
