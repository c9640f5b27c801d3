"""How long the next job will wait."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.prediction import predicted_wait


def predict(**facts: Any) -> float:
    return predicted_wait(**{"waiting": 100, "slots": 10, "run_seconds": 0.5, "rate": 20.0, "oldest_age": 5.0, **facts})


def test_nobody_waits_where_none_waits() -> None:
    assert predict(waiting=0, rate=0.0) == 0.0


def test_the_slots_share_what_waits() -> None:
    assert predict() == 100 * 0.5 / 10


def test_a_line_that_is_old_goes_on_as_it_went() -> None:
    assert predict(oldest_age=40.0, rate=4.0) == 100 / 4.0


def test_the_rate_of_an_idle_pool_says_nothing_of_a_burst() -> None:
    assert predict(waiting=10_000, rate=0.1, run_seconds=0.01, oldest_age=0.2) == 10.0


def test_where_nothing_moves_the_wait_is_at_least_the_age_of_the_oldest() -> None:
    assert predict(rate=0.0, oldest_age=300.0) == 300.0
    assert predict(rate=0.0, oldest_age=0.0) == 5.0


@pytest.mark.parametrize("slots", [0, 1, 10])
def test_without_a_sample_it_is_never_zero(slots: int) -> None:
    """AC-137: a queue of 100 and no samples."""
    assert predict(slots=slots, run_seconds=None, rate=0.0, oldest_age=0.0) > 0
    assert predict(waiting=1, slots=slots, run_seconds=0.0, rate=0.0, oldest_age=0.0) > 0


def test_a_pause_that_ends_comes_before_it() -> None:
    assert predict(paused_for=60.0) == 65.0
