"""When cron expressions fire, against two other opinions: a walk over every minute, written here, and cronsim."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from time import thread_time
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.core.schedule import Cron, firings
from jobs.exceptions import ScheduleInvalid

MINUTE = timedelta(minutes=1)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
CHANGING = [
    "Africa/Cairo",
    "America/New_York",
    "America/Santiago",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Europe/Paris",
]
"""Gaps at midnight (Cairo, Santiago), of half an hour (Lord Howe), of two hours (Troll), and two plain ones."""


# --- The walk --------------------------------------------------------------------------------------------------------


@lru_cache
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


def names(expression: str, wall: datetime) -> bool:
    """Whether the expression, of five fields, names this time on the wall."""
    minute, hour, day, month, weekday = expression.split()
    if wall.minute not in numbers(minute, 0, 59) or wall.hour not in numbers(hour, 0, 23):
        return False
    if wall.month not in numbers(month, 1, 12):
        return False
    date = wall.replace(hour=0, minute=0)
    fit = [day_fits(day, date), weekday_fits(weekday, date)]
    return all(fit) if day[0] == "*" or weekday[0] == "*" else any(fit)


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
def changes(zone: str, year: int) -> list[datetime]:
    """The hours of a year at whose end the clocks of the zone have been changed."""
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(366)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return [
        next(
            early + timedelta(hours=n)
            for n in range(24)
            if (early + timedelta(hours=n + 1)).astimezone(ZoneInfo(zone)).utcoffset() != before
        )
        for (early, before), (_, after) in pairwise(zip(hours, offsets, strict=True))
        if before != after
    ]


# --- Expressions ---------------------------------------------------------------------------------------------------


def field(low: int, high: int, *more: str) -> st.SearchStrategy[str]:
    """Stars, steps, numbers, ranges and lists of them."""
    number = st.integers(low, high)
    span = st.tuples(number, number).filter(lambda pair: pair[0] < pair[1]).map(lambda pair: f"{pair[0]}-{pair[1]}")
    step = st.integers(1, high)
    star = st.one_of(st.just("*"), step.map(lambda step: f"*/{step}"))
    item = st.one_of(number.map(str), span, st.tuples(span, step).map(lambda pair: f"{pair[0]}/{pair[1]}"))
    kinds = [star, item, st.lists(item, min_size=2, max_size=3).map(",".join)]
    return st.one_of(*kinds, *([st.sampled_from(more)] if more else []))


clocks = st.tuples(field(0, 59), st.one_of(field(0, 23), field(0, 4))).map(" ".join)
days = st.tuples(
    field(1, 31, "L", "10,L", "1W", "15W", "31W"),
    st.one_of(st.just("*"), field(1, 12)),
    field(0, 6, "5L", "0L", "1#2", "6#5", "1#1,5L", "5-7", "7"),
).map(" ".join)
moments = st.datetimes(datetime(1995, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))


def accepted(expression: str, zone: str = "UTC") -> Cron | None:
    """The rule, or None where no such day ever comes."""
    try:
        return Cron(expression, zone)
    except ScheduleInvalid as error:
        if "no such day ever comes" in str(error):
            return None
        raise


# --- The proofs ------------------------------------------------------------------------------------------------------


def compare_around(zone: str, year: int, which: int, minute: int, clock: str) -> None:
    """All firings of four hours that begin ``minute`` minutes from two hours before a change of the clocks."""
    found = changes(zone, year)
    start = found[which % len(found)] if found else datetime(year, 6, 1, tzinfo=UTC) + timedelta(days=which)
    start += timedelta(minutes=minute - 120)
    end = start + timedelta(hours=4)
    expression = f"{clock} * * *"

    fired = takewhile(lambda at: at <= end, firings(Cron(expression, zone), start))

    assert list(fired) == walk(expression, zone, start, 4 * 60 + 1)


beginnings = st.integers(0, 330)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(CHANGING), st.integers(2023, 2030), st.integers(0, 3), beginnings, clocks)
@example("Australia/Lord_Howe", 2026, 0, 0, "*/7 *")
@example("Australia/Lord_Howe", 2026, 0, 190, "0-59 0-23")
@example("America/Santiago", 2026, 1, 60, "30 0")
@example("Antarctica/Troll", 2026, 0, 60, "15 1-3")
@example("Europe/Paris", 2026, 1, 0, "0-59 0-23")
@example("Europe/Paris", 2026, 1, 185, "0-59 0-23")
def test_firings_are_those_of_the_clock_on_the_wall(zone, year, which, minute, clock):
    compare_around(zone, year, which, minute, clock)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ZONES), st.integers(1970, 2037), st.integers(0, 3), beginnings, clocks)
def test_so_they_are_in_every_zone_at_every_change(zone, year, which, minute, clock):
    compare_around(zone, year, which, minute, clock)


@settings(max_examples=80, deadline=None)
@given(days, moments)
@example("13 * 5L", datetime(2026, 1, 1, tzinfo=UTC))
@example("*/2 * 5", datetime(2026, 1, 1, tzinfo=UTC))
@example("31 6 1", datetime(2026, 1, 1, tzinfo=UTC))
@example("31W * *", datetime(2026, 1, 1, tzinfo=UTC))
def test_the_day_is_one_that_both_day_fields_together_name(day, moment):
    rule = accepted(f"30 6 {day}")
    if rule is None:
        return
    due = rule.next_after(moment)

    assert due is not None
    assert names(f"30 6 {day}", due.replace(tzinfo=None))
    between = moment.replace(hour=6, minute=30, second=0, microsecond=0)
    between += timedelta(days=1) if between <= moment else timedelta()
    for _ in range(400):  # and no day before it, within a year
        if between >= due:
            break
        assert not names(f"30 6 {day}", between.replace(tzinfo=None)), between
        between += timedelta(days=1)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(["UTC", "Europe/Paris", "America/New_York"]), clocks, days, moments)
def test_cronsim_is_of_the_same_opinion(zone, clock, day, moment):
    if "W" in day:  # which it does not know
        return
    rule = accepted(f"{clock} {day}", zone)
    if rule is None:
        return
    other = CronSim(f"{clock} {day}", moment.astimezone(ZoneInfo(zone)))

    for mine, theirs in zip(islice(firings(rule, moment), 3), other, strict=False):
        assert mine == theirs.astimezone(UTC)


@settings(max_examples=40, deadline=None)
@given(clocks, moments)
def test_six_fields_are_five_with_seconds_before_them(clock, moment):
    plain, at_zero = Cron(f"{clock} * * *", "Europe/Paris"), Cron(f"0 {clock} * * *", "Europe/Paris")
    at_fifteen = Cron(f"15 {clock} * * *")

    assert list(islice(firings(plain, moment), 3)) == list(islice(firings(at_zero, moment), 3))
    for due in islice(firings(Cron(f"{clock} * * *"), moment), 3):
        assert at_fifteen.next_after(due) == due + timedelta(seconds=15)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(ZONES), clocks, days, moments)
@example("Africa/Casablanca", "0 0", "* 2 1#5", datetime(2044, 3, 1, tzinfo=UTC))
@example("Europe/Paris", "0 0", "29 2 */6", datetime(2072, 3, 1, tzinfo=UTC))
def test_a_firing_is_later_than_the_moment_and_in_utc_and_found_within_10_ms(zone, clock, day, moment):
    rule = accepted(f"{clock} {day}", zone)
    if rule is None:
        return
    took = []
    for _ in range(3):  # the garbage collector may run in one of them
        begun = thread_time()
        due = rule.next_after(moment)
        took.append(thread_time() - begun)

    assert due is not None
    assert due > moment
    assert due.tzinfo is UTC
    assert min(took) < 0.01


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("30 2 * * *", "Europe/Paris", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T01:10Z", ["2026-10-26T01:30Z", "2026-10-27T01:30Z"]),
        ("*/30 * * * *", "Europe/Paris", "2026-10-25T00:15Z", ["2026-10-25T00:30Z", "2026-10-25T01:00Z"]),
        ("*/30 2 * * *", "Europe/Paris", "2026-03-28T12:00Z", ["2026-03-30T00:00Z", "2026-03-30T00:30Z"]),
        ("0 2,3 * * *", "Europe/Paris", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:00Z"]),
        ("*/5 * * * * *", "Europe/Paris", "2026-03-29T00:59:52Z", ["2026-03-29T00:59:55Z", "2026-03-29T01:00:00Z"]),
        ("* 0-59 2 * * *", "Europe/Paris", "2026-10-25T00:59:58Z", ["2026-10-25T00:59:59Z", "2026-10-26T01:00:00Z"]),
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00Z", ["2026-09-06T04:00Z", "2026-09-07T03:00Z"]),
        ("0 12 30 12 *", "Pacific/Apia", "2011-01-01T00:00Z", ["2011-12-30T10:00Z", "2012-12-29T22:00Z"]),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00Z", ["2104-02-29T00:00Z", "2108-02-29T00:00Z"]),
        ("0 0 * 2 1#5", "UTC", "2026-01-01T00:00Z", ["2044-02-29T00:00Z", "2072-02-29T00:00Z"]),
    ],
)
def test_the_cases_people_ask_about(expression, zone, after, expected):
    fired = islice(firings(Cron(expression, zone), datetime.fromisoformat(after)), 2)

    assert list(fired) == [datetime.fromisoformat(each) for each in expected]


def test_a_rule_may_be_asked_about_any_moment():
    rule = Cron("0 0 * * *", "Asia/Tokyo")

    assert rule.next_after(datetime.min.replace(tzinfo=UTC)) is not None
    assert rule.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert rule.next_after(datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)) == datetime(2026, 1, 1, 15, tzinfo=UTC)
