"""The word that was probably meant; values and lengths of time in words."""

from __future__ import annotations

import pytest

from jobs.core.wording import did_you_mean, length, shown


def test_a_slip_is_answered_with_the_word() -> None:
    assert did_you_mean("emial.send", ["email.send", "report.build"]) == "Did you mean 'email.send'?"


def test_a_strange_word_is_answered_with_what_there_is() -> None:
    assert did_you_mean("zzz", ["b", "a"]) == "Known: a, b."


def test_a_long_list_is_cut() -> None:
    assert did_you_mean("?", map(str, range(20))).endswith("and 12 more.")


def test_with_nothing_known_it_says_what_it_is_told() -> None:
    assert did_you_mean("x", [], none="Nothing is registered.") == "Nothing is registered."


def test_a_hostile_word_costs_nothing() -> None:
    assert did_you_mean("x" * 10_000_000, ["x"]).startswith("Known")


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


def test_any_value_can_be_shown() -> None:
    assert shown("a") == "'a'"
    assert shown(10**5000) == "<int>"
    assert shown(Broken()) == "<Broken>"
    assert shown("\ud800") == r"'\ud800'"
    assert len(shown("x" * 1000)) == 81


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.007, "7 ms"),
        (0.34, "340 ms"),
        (7.94, "7.9 s"),
        (7.0, "7 s"),
        (6.96, "7 s"),
        (41.2, "41 s"),
        (130, "2 min 10 s"),
        (120, "2 min"),
        (41 * 60, "41 min"),
        (12 * 3600 + 60, "12 h"),
        (3 * 3600 + 120, "3 h 2 min"),
        (86_400 * 3, "3 days"),
    ],
)
def test_a_length_of_time(seconds: float, text: str) -> None:
    assert length(seconds) == text
