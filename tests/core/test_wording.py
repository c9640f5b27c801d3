"""The word that was probably meant."""

from __future__ import annotations

from jobs.core.wording import did_you_mean, shown


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
