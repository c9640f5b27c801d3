"""When cron expressions fire, against two other opinions: a walk over every minute, and cronsim.

What chance finds here; ``cron_proof`` has fixed sets of thousands.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from time import thread_time
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.core.schedule import Cron, firings
from jobs.exceptions import ScheduleInvalid
from tests.support.wall import YEARS, ZONES, changes, names, walk

CHANGING = [
    "Africa/Cairo",
    "America/New_York",
    "America/Santiago",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Europe/Paris",
]
"""Gaps at midnight (Cairo, Santiago), of half an hour (Lord Howe), of two hours (Troll), and two plain ones."""


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


@settings(max_examples=50, deadline=None)
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
@given(st.sampled_from(ZONES), st.sampled_from(YEARS), st.integers(0, 3), beginnings, clocks)
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
