"""Figures as the scripts write them, and as people read them."""

from __future__ import annotations

from jobs.core.figures import COUNTED, Figures, by_type, merged


def test_a_start_is_counted_by_its_wait_and_a_success_by_its_run() -> None:
    figures = Figures.of([("wait3", 2), ("wait9", 1), ("run1", 2), ("wait_ms", 9), ("run_ms", 2), ("failed", 1)])

    assert (figures.count("started"), figures.count("succeeded"), figures.count("failed")) == (3, 2, 1)
    assert (figures.wait.total_ms, figures.run.total_ms) == (9, 2)
    assert figures.totals() == {"started": 3, "succeeded": 2, "failed": 1}


def test_the_mean_run_counts_failures_too() -> None:
    figures = Figures.of([("run9", 1), ("run_ms", 2), ("failed", 1), ("failed_ms", 8)])

    assert (figures.ended, figures.run_seconds) == (2, 0.005)
    assert Figures().run_seconds is None


def test_figures_of_several_places_add_up() -> None:
    one, other = Figures.of([("run2", 1), ("dead", 1), ("failed_ms", 3)]), Figures.of([("run2", 4), ("dead", 2)])

    both = merged([one, other])

    assert (both.count("succeeded"), both.count("dead"), both.failed_ms) == (5, 3, 3)


def test_fields_are_told_apart_by_their_type_which_may_hold_colons() -> None:
    found = by_type({"failed:a:b": 2, "run1:a:b": 1, "dead:c": 1, "nonsense": 7})

    assert {name: figures.totals() for name, figures in found.items()} == {
        "a:b": {"succeeded": 1, "failed": 2},
        "c": {"dead": 1},
    }


def test_every_name_has_a_place_in_what_people_read() -> None:
    assert set(COUNTED) < Figures().as_dict().keys()
