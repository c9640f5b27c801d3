"""How figures, lengths of time and findings are worded."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dashboard import formats, needs, questions, standing
from dashboard.overall import Overall
from tests.dashboard.readings import NOW, overall, pool


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "–"), (0, "0"), (999, "999"), (1_337, "1,337"), (999_999, "999,999"), (1_210_000, "1.21 m")],
)
def test_a_count(number: float | None, text: str) -> None:
    assert formats.count(number) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no\n funds ", "no funds"),
        ("n" * 20, "n" * 9 + "…"),
        ("\u202egpj.exe\u2066", "gpj.exe"),  # would turn round the words after it
        ("שלום", "שלום"),
        ("👩\u200d🔧", "👩\u200d🔧"),
    ],
)
def test_a_text_among_others_is_one_line_that_turns_nothing_round(text: str, line: str) -> None:
    assert formats.shortened(text, 10) == line


@pytest.mark.parametrize(
    ("names", "text"), [(["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a"] * 1_004, "a, a, a and 1,001 more")]
)
def test_names_of_which_a_few_are_told(names: list[str], text: str) -> None:
    assert formats.some(names) == text


def test_a_length_of_time_that_nobody_knows_is_a_dash() -> None:
    assert (formats.duration(None), formats.duration(0.34)) == ("–", "340 ms")


@pytest.mark.parametrize(("rate", "text"), [(None, "–"), (0, "0"), (0.051, "0.05"), (2.44, "2.4"), (914.2, "914")])
def test_a_rate(rate: float | None, text: str) -> None:
    assert formats.rate(rate) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "now"), (22, "in 22 s"), (-2460, "41 min ago")])
def test_a_moment_from_now(seconds: float, text: str) -> None:
    assert formats.relative(NOW + timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(
    ("facts", "drains"),
    [
        ({}, "now"),
        ({"ready": 5, "predicted_wait_seconds": 2.0}, "now"),
        ({"ready": 5, "predicted_wait_seconds": 660.0}, "11 min"),
        ({"ready": 5, "workers": 0, "predicted_wait_seconds": 1.0}, "never"),
        ({"ready": 5}, "unknown"),
        ({"ready": 500, "predicted_wait_seconds": 660.0, "growing": 40.0}, "growing"),
        ({"ready": 500, "predicted_wait_seconds": 8.0, "growing": 40.0}, "8 s"),
        ({"ready": 500, "predicted_wait_seconds": 660.0, "growing": 40.0, "paused": {"by": "ana"}}, "paused"),
        ({"ready": 5, "paused": {"by": "ana"}}, "paused"),
        ({"ready": 5, "predicted_wait_seconds": 660.0, "everything_paused": {"by": "ana"}}, "paused"),
        ({"ready": 5, "hosts_paused": True}, "paused"),
        ({"ready": 5, "hosts_paused": True, "predicted_wait_seconds": 660.0}, "11 min"),
    ],
)
def test_when_a_pool_drains(facts: dict[str, Any], drains: str) -> None:
    assert standing.drains_in(pool(**facts)) == drains


class TestFindings:
    def test_a_pool_that_is_late_is_one(self) -> None:
        found = needs.needs(overall(pool(ready=868, leased=10, oldest_ready_age_seconds=130.0)))

        assert [need.before + need.noun + need.after for need in found] == ["Pool billing is 2 min 10 s behind"]

    def test_a_long_pause_without_an_end_is_one_and_a_short_one_is_none(self) -> None:
        def paused(minutes: int) -> Overall:
            at = (NOW - timedelta(minutes=minutes)).isoformat()
            return overall(pool(ready=5, paused={"by": "ana", "at": at, "reason": "disk", "until": None}))

        assert needs.needs(paused(5)) == []
        assert needs.needs(paused(90))[0].cause == "Paused by ana: disk. Nothing says when it ends."

    def test_so_it_is_with_a_pause_of_everything_which_makes_no_pool_late(self) -> None:
        def paused(minutes: int) -> Overall:
            pause = {"by": "ana", "at": (NOW - timedelta(minutes=minutes)).isoformat(), "reason": "", "until": None}
            late = pool(ready=5, oldest_ready_age_seconds=300.0, everything_paused=pause)
            return replace(overall(late), paused=pause)

        assert needs.needs(paused(5)) == []
        [need] = needs.needs(paused(90))
        assert need.before + need.noun + need.after == "Everything is paused with 5 ready jobs"

    def test_a_moment_that_is_none_breaks_nothing(self) -> None:
        assert needs.needs(overall(pool(ready=5, paused={"by": "x", "at": "then", "until": "soon"}))) == []

    def test_the_headline_counts_in_words(self) -> None:
        busy = overall(pool("a", ready=1, workers=0), pool("b", ready=1, workers=0))

        assert needs.headline(busy, needs.needs(busy)) == "Two things need you"
        assert needs.headline(overall(pool()), []) == "Nothing needs you"

    def test_a_question_is_never_answered_from_nothing(self) -> None:
        unknown = Overall()

        assert needs.headline(unknown, []) == "Nothing is known yet"
        assert "has not been read" in questions.summary(unknown)
