"""Figures, ratios and bars: what decides whether a benchmark holds."""

from __future__ import annotations

import pytest

from benchmarks.report import Bar, Figure


def figure(bar: Bar | None = None) -> Figure:
    made = Figure("drain", "jobs/s", bar)
    for ours, probe in ((40, 100), (10, 20), (30, 100)):
        made.add(ours, probe)
    return made


def test_the_value_is_the_median_of_the_rounds() -> None:
    assert figure().value == 30


def test_the_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    assert figure().ratio == pytest.approx(0.4)


def test_a_figure_without_reference_has_no_ratio() -> None:
    alone = Figure("memory", "bytes")
    alone.add(250)
    assert alone.ratio is None


@pytest.mark.parametrize(
    ("bar", "holds"),
    [
        (Bar(0.35), True),
        (Bar(0.5), False),
        (Bar(50, of="value", at_most=True), True),
        (Bar(20, of="value", at_most=True), False),
    ],
)
def test_a_bar_holds_or_not(bar: Bar, holds: bool) -> None:
    assert bar.holds(figure(bar)) is holds


def test_a_bar_on_a_ratio_that_was_not_measured_does_not_hold() -> None:
    alone = Figure("memory", "bytes", Bar(1.0))
    alone.add(250)
    assert not Bar(1.0).holds(alone)
