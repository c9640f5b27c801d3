"""Intervals, one-off times, descriptions, and the preview that a person decides by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import Cron, Interval
from jobs.core.schedule import Once, Rule, Window, firings, preview, preview_of
from jobs.exceptions import OptionInvalid, ScheduleInvalid

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
moments = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


class TestInterval:
    def test_it_fires_at_its_anchor_and_then_at_every_whole_step(self) -> None:
        fired = islice(firings(Interval(90, START), START - timedelta(days=1)), 3)

        assert list(fired) == [START, START + timedelta(seconds=90), START + timedelta(seconds=180)]

    @pytest.mark.parametrize("seconds", [1, 0.1, 1 / 3, 7.7, 86_400])
    def test_ten_thousand_firings_do_not_drift(self, seconds: float) -> None:
        rule = Interval(seconds, START)
        fired = list(islice(firings(rule, START), 10_000))

        assert fired[-1] == START + 10_000 * rule.every
        assert {later - earlier for earlier, later in pairwise(fired)} == {rule.every}

    def test_it_counts_real_time_through_a_change_of_the_clocks(self) -> None:
        before = datetime(2026, 3, 28, 12, tzinfo=UTC)

        assert Interval(timedelta(days=1), before).next_after(before) == before + timedelta(days=1)

    @given(st.floats(0.1, 1e8), moments, moments)
    def test_it_is_always_later_by_at_most_one_step(self, seconds: float, anchor: datetime, moment: datetime) -> None:
        rule = Interval(seconds, anchor)
        due = rule.next_after(moment)

        assert due is not None
        assert due > moment
        assert due == anchor or (due - anchor) % rule.every == timedelta()
        assert due == anchor or due - moment <= rule.every

    def test_where_the_calendar_ends_it_ends(self) -> None:
        assert Interval(86_400).next_after(datetime.max.replace(tzinfo=UTC)) is None

    @pytest.mark.parametrize("every", [0, 0.05, -1, float("nan"), timedelta(), "5m", True])
    def test_what_is_no_interval_is_refused(self, every: object) -> None:
        with pytest.raises((ScheduleInvalid, OptionInvalid)) as caught:
            Interval(every)  # type: ignore[arg-type]

        assert caught.value.fix

    @pytest.mark.parametrize(
        ("every", "words"),
        [
            (300, "Every 5 minutes"),
            (3600, "Every hour"),
            (5400, "Every 1 hour 30 minutes"),
            (0.5, "Every 500 milliseconds"),
        ],
    )
    def test_it_says_so_in_words(self, every: float, words: str) -> None:
        assert Interval(every).describe() == words


class TestOnce:
    def test_it_fires_one_time(self) -> None:
        assert list(firings(Once(START), START - timedelta(days=1))) == [START]
        assert Once(START).next_after(START) is None

    def test_it_says_so_in_words(self) -> None:
        assert Once(START).describe() == "Once at 2026-01-01T09:00:00.000Z"


@pytest.mark.parametrize("rule", [Cron("0 0 * * *"), Interval(60), Once(START)])
def test_a_moment_without_zone_is_refused(rule):
    with pytest.raises(ScheduleInvalid, match="how far it is from UTC"):
        rule.next_after(datetime(2026, 1, 1))


@pytest.mark.parametrize("zone", ["Europe/Pariss", "", "Europe", "../etc/passwd", "x" * 300])
def test_a_zone_that_is_not_there_is_refused(zone):
    with pytest.raises(ScheduleInvalid, match="no time zone"):
        Cron("0 0 * * *", zone)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * *", "At 02:30"),
        ("*/5 * * * *", "Every 5 minutes"),
        ("@hourly", "Every hour"),
        ("* * * * * *", "Every second"),
        ("15 30 2 * * *", "At 02:30:15"),
        ("*/45 * * * *", "At 0 and 45 minutes past the hour"),
        ("0 9 * * MON-FRI", "At 09:00, Monday through Friday"),
        ("0 9 * * 5-7", "At 09:00, Friday through Sunday"),
        ("0 9 * * 0,6", "At 09:00, on Saturday and Sunday"),
        ("0 9 L * *", "At 09:00, on the last day of the month"),
        ("0 9 1,15,L * *", "At 09:00, on day 1, day 15 and the last day of the month"),
        ("0 9 15W * *", "At 09:00, on the weekday nearest day 15 of the month"),
        ("0 9 * * L5", "At 09:00, on the last Friday of the month"),
        ("0 9 * * 1#2,5L", "At 09:00, on the second Monday and last Friday of the month"),
        ("0 9 13 * 5", "At 09:00, on day 13 of the month or on Friday"),
        ("0 9 13 * 5L", "At 09:00, on day 13 of the month or on the last Friday of the month"),
        ("0 9 */2 * 5", "At 09:00, every 2 days from the first of the month but only on Friday"),
        ("0 9 29 FEB *", "At 09:00, on day 29 of the month, only in February"),
        ("@yearly", "At 00:00, on day 1 of the month, only in January"),
    ],
)
def test_the_words_say_what_is_done(expression, words):
    assert Cron(expression).describe() == words


class TestPreview:
    def test_it_has_the_shape_of_the_contract(self) -> None:
        shown = preview("30 6 * * *", "Europe/Paris", 2, datetime(2026, 3, 28, tzinfo=UTC)).as_dict()

        assert shown == {
            "items": [
                {"utc": "2026-03-28T05:30:00.000Z", "local": "2026-03-28T06:30:00.000+01:00"},
                {"utc": "2026-03-29T04:30:00.000Z", "local": "2026-03-29T06:30:00.000+02:00"},
            ],
            "description": "At 06:30",
            "warnings": [],
        }

    @given(moments)
    def test_what_it_shows_is_what_fires(self, moment: datetime) -> None:
        shown = preview("*/7 1-3 * * *", "America/Santiago", 3, moment)

        rule = Cron("*/7 1-3 * * *", "America/Santiago")
        assert [item.utc for item in shown.items] == list(islice(firings(rule, moment), 3))
        assert all(item.local == item.utc for item in shown.items)

    @pytest.mark.parametrize(
        ("expression", "warnings"),
        [
            ("30 6 * * *", []),
            ("*/5 * * * *", []),
            ("0 6 * * *", ["full hour"]),
            ("H 6 * * *", ["from the name of the schedule"]),
            ("*/20 * * * * *", ["3 times in each minute"]),
            ("*/45 * * * *", ["begins anew with each hour"]),
            ("30 6 31 6 1", ["none of its months"]),
            ("30 2 * * *", ["it fires at 03:00 instead", "the first time only"]),
            ("*/30 2 * * *", ["does not fire then", "both times"]),
            ("30 2 * * MON", []),
        ],
    )
    def test_it_warns_of_what_may_surprise(self, expression: str, warnings: list[str]) -> None:
        given = preview(expression, "Europe/Paris", 5, START).warnings

        assert len(given) == len(warnings)
        for said, meant in zip(given, warnings, strict=True):
            assert meant in said

    def test_it_tells_when_nothing_comes_any_more(self) -> None:
        shown = preview("30 6 * * *", "UTC", 5, datetime.max.replace(tzinfo=UTC))

        assert shown.items == ()
        assert shown.warnings == ("It never fires again.",)


class TestPreviewOfAnyRule:
    def test_every_kind_is_put_in_words_and_on_the_wall_of_the_zone(self) -> None:
        rules = (Cron("0 10 * * *", "Europe/Paris"), Interval(3_600, START), Once(START))

        shown = [preview_of(rule, "Europe/Paris", 1, START - timedelta(minutes=1)) for rule in rules]

        assert [each.items[0].utc for each in shown] == [START] * 3
        assert {f"{each.items[0].local:%H:%M %Z}" for each in shown} == {"10:00 CET"}

    def test_it_begins_and_ends_with_the_window_and_counts_what_is_left(self) -> None:
        def hours(**window: Any) -> list[int]:
            shown = preview_of(Cron("0 * * * *"), "UTC", 9, START, window=Window(**window))
            return [item.utc.hour for item in shown.items]

        assert hours(starts_at=START + timedelta(hours=2), ends_at=START + timedelta(hours=5)) == [11, 12, 13]
        assert hours(starts_at=START - timedelta(hours=2), firings_left=2) == [10, 11]
        assert hours(firings_left=0) == []

    def test_a_rule_that_comes_before_its_own_job_has_ended_is_warned_of(self) -> None:
        def warnings(seconds: float | None) -> tuple[str, ...]:
            return preview_of(Interval(300), "UTC", 2, START, usual_seconds=seconds).warnings

        assert "usually takes 7 minutes 1 second and it fires again after 5 minutes" in warnings(421.3)[0]
        assert warnings(299) == warnings(None) == ()

    def test_an_interval_below_a_minute_is_warned_of(self) -> None:
        assert "more often than once a minute: every 5 seconds" in preview_of(Interval(5), "UTC", 2, START).warnings[0]

    def test_it_says_what_the_next_change_of_the_clocks_means(self) -> None:
        def note(rule: Rule, zone: str) -> str:
            return preview_of(rule, zone, 2, START).note

        daily = note(Cron("30 6 * * *", "Europe/Paris"), "Europe/Paris")
        assert "put forward on 2026-03-29, 02:00 to 03:00: its times on the wall stay as they are" in daily
        assert "move by 30 minutes" in note(Interval(3_600), "Australia/Lord_Howe")
        assert note(Cron("30 6 * * *"), "UTC") == note(Once(START), "Europe/Paris") == ""
