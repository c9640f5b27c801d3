"""The cron dialect: what is understood, how it is spelled afterwards, and what is refused with which advice."""

from __future__ import annotations

from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.schedule import LONGEST_EXPRESSION, SCHEDULE_KINDS, Cron, parse
from jobs.exceptions import ScheduleInvalid


def refusal(text: str) -> ScheduleInvalid:
    with pytest.raises(ScheduleInvalid) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("30 2 * * *", "30 2 * * *"),
        ("  30\t2 *  * *\r\n", "30 2 * * *"),
        ("0 0 12 * * *", "0 0 12 * * *"),
        ("0 9 * jan-mar mon-fri", "0 9 * JAN-MAR MON-FRI"),
        ("0 9 ? * ?", "0 9 * * *"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 9 15w * *", "0 9 15W * *"),
        ("0 9 W15 * *", "0 9 15W * *"),
        ("0 9 * * 5L", "0 9 * * 5L"),
        ("0 9 * * L5", "0 9 * * 5L"),
        ("0 9 * * FRIL", "0 9 * * 5L"),
        ("0 9 * * L7", "0 9 * * 0L"),
        ("0 9 * * FRI#2", "0 9 * * FRI#2"),
        ("H H(0-5) * * *", "H H(0-5) * * *"),
        ("@DAILY", "@daily"),
        ("@midnight", "@daily"),
        ("@annually", "@yearly"),
        ("@hourly", "@hourly"),
    ],
)
def test_each_expression_has_one_spelling(written, stored):
    assert Cron(written).expression == stored


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("*/15 * * * *", "minute", (0, 15, 30, 45)),
        ("5-59/15 * * * *", "minute", (5, 20, 35, 50)),
        ("0,10-12 * * * *", "minute", (0, 10, 11, 12)),
        ("0 22-2 * * *", "hour", (0, 1, 2, 22, 23)),
        ("0 0 * NOV-FEB *", "month", (1, 2, 11, 12)),
        ("0 0 28-3 * *", "day", (1, 2, 3, 28, 29, 30, 31)),
        ("0 0 * * 5-7", "weekday", (0, 5, 6)),
        ("0 0 * * 7", "weekday", (0,)),
        ("0 0 * * 0-7", "weekday", (0, 1, 2, 3, 4, 5, 6)),
        ("0 0 * * SAT-SUN", "weekday", (0, 6)),
        ("10 0 0 1 1 *", "second", (10,)),
        ("30 2 * * *", "second", (0,)),
    ],
)
def test_a_field_stands_for_these_values(text, field, values):
    assert getattr(parse(text), field).values == values


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("59/15 * * * *", "does not say where it ends", "'59 * * * *'"),
        ("6/1 * * * *", "does not say where it ends", "'6-59 * * * *'"),
        ("5/15 * * * *", "does not say where it ends", "'5-59/15 * * * *'"),
        ("0 0 * JAN/3 *", "does not say where it ends", "'0 0 * JAN-DEC/3 *'"),
        ("0 0 * * SUN-SUN", "no range", "'0 0 * * SUN'"),
        ("0 0 * JAN-JAN *", "no range", "'0 0 * JAN *'"),
        ("0 0 * * 1,SUN-SUN", "no range", "'0 0 * * 1,SUN'"),
        ("R 3 * * *", "at every restart", "'H 3 * * *'"),
        ("R(0-9) 3 * * *", "at every restart", "'H(0-9) 3 * * *'"),
        ("@reboot", "start of a system", "@daily"),
        ("@every 5m", "distance between runs", "interval"),
        ("@dayly", "not one of its words", "'@daily'"),
        ("@daily 5", "not one of its words", "alone"),
        ("0 0 LW * *", "'LW' is not known", "'0 0 31W * *'"),
        ("0 0 L-3 * *", "counted back", "28"),
        ("0 0 * * L", "needs its weekday", "'5L'"),
        ("0 0 1,15W * *", "in a list", "one schedule of each"),
        ("0 0 * * 1,5L", "in one list", "two schedules"),
        ("0 0 * * MON#6", "first to fifth", "Friday"),
        ("0 0 * * MONDAY", "not a number from 0 to 7", "'0 0 * * MON'"),
        ("60 * * * *", "60 is not between 0 and 59", "'0 * * * *'"),
        ("0 24 * * *", "24 is not between 0 and 23", "'0 0 * * *'"),
        ("0 0 0 * *", "0 is not between 1 and 31", "from 1 to 31"),
        ("*/0 * * * *", "the step '0'", "'*/5'"),
        ("1,,2 * * * *", "beside a comma", "comma"),
        ("* * * *", "4 fields", "minute, hour"),
        ("0 0 0 1 1 * 2030", "seven fields", "start and an end"),
        ("", "it is empty", "five fields"),
        ("30\u00a02 * * *", "other characters", "keyboard"),
        ("٣ 2 * * *", "other characters", "keyboard"),
        ("0 0 31 2 *", "no such day", "'L'"),
        ("0 0 30,31 FEB *", "no such day", "'L'"),
        ("0 0 31 4,6,9,11 *", "no such day", "'L'"),
        ("0 0 */30 * 5#3", "no such day", "'L'"),
        ("* " * 200, "characters", "several schedules"),
    ],
)
def test_what_is_refused_says_why_and_what_to_write(text, reason, advice):
    error = refusal(text)

    assert reason in str(error) + error.fix
    assert advice in str(error) + error.fix


@pytest.mark.parametrize("text", ["59/15 * * * *", "5/15 * * * *", "0 0 * JAN/3 *", "0 0 * * SUN-SUN", "R 3 * * *"])
def test_the_advice_is_accepted(text):
    advised = refusal(text).fix.split("'")[1]

    assert Cron(advised).expression == advised


def test_impossible_and_overlong_expressions_are_refused_at_once():
    for text in ("0 0 31 2 *", "0 0 */30 * 5#3", ",".join(["1"] * 100_000) + " * * * *"):
        begun = thread_time()
        refusal(text)
        assert thread_time() - begun < 0.1


def test_the_longest_expression_is_255_characters_long():
    text = ",".join(["10"] * 82) + " * * * *"
    assert len(text) == LONGEST_EXPRESSION - 2

    assert parse(text)
    assert "255" in str(refusal(text.replace("10 *", "10,10 *", 1)))


@pytest.mark.parametrize(
    ("text", "wildcard"),
    [
        ("* 3 * * *", True),
        ("*/5 3 * * *", True),
        ("0 * * * *", True),
        ("0 */2 * * *", True),
        ("@hourly", True),
        ("0-59 0-23 * * *", False),
        ("30 3 * * *", False),
        ("* 30 3 * * *", False),
    ],
)
def test_an_expression_follows_the_clock_if_its_minute_or_hour_begins_with_a_star(text, wildcard):
    assert parse(text).is_wildcard is wildcard


class TestHash:
    def test_the_name_of_the_schedule_decides(self) -> None:
        named = [parse("H H * * *", name=f"report-{n}") for n in range(300)]

        assert len({each.minute.values for each in named}) == 60
        assert len({each.hour.values for each in named}) == 24

    def test_it_is_the_same_in_every_version(self) -> None:
        """A change here would move every such schedule of every installation."""
        expression = parse("H H H H(1-6) H", name="nightly")

        assert [field.values for field in expression.fields] == [(0,), (59,), (0,), (9,), (4,), (5,)]

    def test_a_step_begins_within_its_first_period(self) -> None:
        for n in range(50):
            values = parse("H/20 * * * *", name=str(n)).minute.values
            assert (len(values), values[0] < 20, values[1] - values[0]) == (3, True, 20)

    def test_a_range_bounds_it_and_days_are_those_of_every_month(self) -> None:
        for n in range(100):
            expression = parse("H(10-19) 0 H * *", name=str(n))
            assert 10 <= expression.minute.values[0] <= 19
            assert 1 <= expression.day.values[0] <= 28

    @pytest.mark.parametrize("text", ["H(5-5) * * * *", "H(9-5) * * * *", "H(0-60) * * * *", "H/0 * * * *"])
    def test_a_range_that_is_none_is_refused(self, text: str) -> None:
        assert refusal(text)

    def test_a_rule_gets_its_name_and_zone_when_it_is_stored(self) -> None:
        rule = Cron("H 3 * * *").bound(name="nightly", timezone="Europe/Paris")

        assert (rule.name, rule.timezone) == ("nightly", "Europe/Paris")
        assert rule == Cron("H 3 * * *", "Europe/Paris", name="nightly")
        assert Cron("0 3 * * *", "UTC").bound(name="nightly", timezone="Europe/Paris").timezone == "UTC"


pieces = st.one_of(
    st.text("0123456789*/-,LWH#?()", min_size=1, max_size=6),
    st.sampled_from(["*", "*/7", "1-5", "L", "5L", "15W", "H", "H(2-5)/2", "MON#2", "JAN-MAR", "7", "0-7"]),
)


@settings(max_examples=100)
@given(st.lists(pieces, min_size=5, max_size=6).map(" ".join))
def test_whatever_is_written_is_understood_or_refused_and_printing_changes_nothing(text):
    try:
        once = parse(text, name="n")
    except ScheduleInvalid as error:
        advice = error.fix
    else:
        advice = "none needed"
        assert parse(once.text, name="n") == once

    assert advice


def test_each_kind_of_schedule_has_its_word():
    assert list(SCHEDULE_KINDS) == ["cron", "interval", "once"]
    assert SCHEDULE_KINDS["cron"] is Cron
