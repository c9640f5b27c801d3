"""The rule that sizes a pool: cases of a system that has it in production, and what was wrong with it there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.autoscale import AutoscaleRule, Decision, Sighting, decide


def rule(**more: Any) -> AutoscaleRule:
    """Desired wait 100 ± 10 seconds with 10 to 60 slots, if not said otherwise."""
    return AutoscaleRule(
        **{"min_slots": 1, "max_slots": 60, "target_wait_seconds": 100.0, "tolerance_seconds": 10.0, **more}
    )


def seen(wait: float | None, slots: int = 10, **more: Any) -> Sighting:
    """All slots of one worker busy, and the wait that is predicted."""
    workers = more.get("workers", 1)
    facts = {"workers": workers, "running": slots * workers, "ready": 1 if wait else 0, **more}
    return Sighting(slots=slots, predicted_wait_seconds=wait, **facts)


# Numbered as in the collection of cases that the rule was taken from: AC-146 and so on --------------------------------


@pytest.mark.parametrize(
    ("number", "given", "sight", "slots", "reason"),
    [
        (146, rule(), seen(95), 10, "in_tolerance_band"),
        (147, rule(), seen(120), 11, "above_upper_boundary"),
        (149, rule(), seen(110.1, 5, workers=2), 5, "above_upper_boundary"),
        (149, rule(), seen(89.9, 5, workers=2), 5, "below_lower_boundary"),
        (150, rule(tolerance_seconds=0), seen(100), 10, "in_tolerance_band"),
        (150, rule(tolerance_seconds=0), seen(110), 11, "above_upper_boundary"),
        (151, rule(min_slots=10), seen(0, 15), 13, "predicted_wait_zero"),
        (153, rule(), seen(151), 15, "deviation_large_above_center"),
        (153, rule(), seen(49), 5, "deviation_large_below_center"),
        (154, rule(), seen(1_000_000), 60, "deviation_large_above_center"),
        (154, rule(min_slots=10), seen(0.001, 10, workers=1000), 10, "deviation_large_below_center"),
        (155, rule(min_slots=5, max_slots=5), seen(500, 5), 5, "deviation_large_above_center"),
        (157, rule(target_wait_seconds=5, tolerance_seconds=10), seen(2), 10, "in_tolerance_band"),
        (158, rule(tolerance_seconds=-1), seen(500), 10, "invalid_wait_params"),
    ],
)
def test_the_rule_decides_as_it_always_has(
    number: int, given: AutoscaleRule, sight: Sighting, slots: int, reason: str
) -> None:
    decision = decide(given, sight)

    assert (decision.slots, decision.reason) == (slots, reason), f"AC-{number}"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"min_slots": 9, "max_slots": 8}, "invalid_inputs"),
        ({"min_slots": -1}, "invalid_inputs"),
        ({"min_slots": 0, "max_slots": 0}, "invalid_inputs"),
        ({"target_wait_seconds": 0}, "target_wait_nonpositive"),
        ({"target_wait_seconds": float("nan")}, "target_wait_nonpositive"),
        ({"target_wait_seconds": float("inf")}, "invalid_wait_params"),
        ({"tolerance_seconds": float("nan")}, "invalid_wait_params"),
        ({"cooldown_seconds": -1}, "invalid_wait_params"),
    ],
)
def test_a_rule_that_makes_no_sense_changes_nothing(wrong: dict[str, Any], reason: str) -> None:
    assert decide(rule(**wrong), seen(500, 7)) == Decision(slots=7, reason=reason)


# What was wrong with it ----------------------------------------------------------------------------------------------


def test_a_job_that_is_stuck_counts_though_the_average_is_good() -> None:
    decision = decide(rule(), seen(95, oldest_wait_seconds=400.0))

    assert (decision.slots, decision.reason) == (40, "deviation_large_above_center")


def test_jobs_wait_without_any_measurement_and_no_slot_is_given_back() -> None:
    assert decide(rule(), seen(None, ready=100)) == Decision(slots=10, reason="nothing_measured", wanted=10)
    assert decide(rule(), seen(0, ready=100)).reason == "nothing_measured"


def test_a_pool_without_slots_gets_one_as_soon_as_a_job_waits() -> None:
    empty = rule(min_slots=0)

    assert decide(empty, seen(None, 0, oldest_wait_seconds=0.2, ready=1)).slots == 1
    assert decide(empty, seen(None, 0, ready=1)).slots == 1
    assert decide(empty, seen(None, 0)).slots == 0


def test_an_empty_pool_comes_down_to_its_least_and_never_below() -> None:
    slots, steps = 60, 0
    while slots > 2:
        slots, steps = decide(rule(min_slots=2), seen(0, slots)).slots, steps + 1

    assert steps < 30
    assert decide(rule(min_slots=2), seen(0, 2)).slots == 2


def test_nothing_moves_while_it_would_not_help() -> None:
    assert decide(rule(), seen(500, is_paused=True)).reason == "paused"
    assert decide(rule(), seen(500, workers=0)).reason == "no_workers"
    assert decide(rule(), seen(500, running=4, max_running=4)).reason == "held_by_max_running"
    assert decide(rule(), seen(500, running=7)).reason == "slots_are_free"
    assert decide(rule(), seen(500, running=8)).slots == 50


def test_a_change_is_judged_before_the_next_one() -> None:
    cooling = rule(cooldown_seconds=30)

    assert decide(cooling, seen(500, since_change_seconds=29.9)) == Decision(slots=10, reason="cooling_down")
    assert decide(cooling, seen(500, since_change_seconds=30)).slots == 50


def test_new_bounds_hold_at_once() -> None:
    moved = rule(min_slots=20, max_slots=40)

    assert decide(moved, seen(95, 10, since_change_seconds=1)) == Decision(slots=20, reason="outside_of_bounds")
    assert decide(moved, seen(0, 50, is_paused=True)).slots == 40


# Whatever comes ------------------------------------------------------------------------------------------------------

waits = st.none() | st.floats(min_value=0, max_value=1e12)
counts = st.integers(min_value=0, max_value=10_000)


@given(
    least=st.integers(0, 50),
    span=st.integers(1, 100),
    target=st.floats(min_value=0.001, max_value=1e6),
    tolerance=st.floats(min_value=0, max_value=1e6),
    slots=st.integers(0, 200),
    wait=waits,
    oldest=waits,
    workers=counts,
    running=counts,
    ready=counts,
)
def test_a_decision_keeps_its_bounds_and_moves_the_right_way(
    least: int,
    span: int,
    target: float,
    tolerance: float,
    slots: int,
    wait: float | None,
    oldest: float | None,
    workers: int,
    running: int,
    ready: int,
) -> None:
    given_rule = AutoscaleRule(
        min_slots=least, max_slots=least + span, target_wait_seconds=target, tolerance_seconds=tolerance
    )
    sight = Sighting(
        slots=slots,
        workers=workers,
        running=running,
        ready=ready,
        predicted_wait_seconds=wait,
        oldest_wait_seconds=oldest,
    )

    decision = decide(given_rule, sight)

    assert least <= decision.slots <= least + span
    if decision.reason != "outside_of_bounds" and sight.wait_seconds:
        low, high = given_rule.band
        if sight.wait_seconds > high:
            assert decision.slots >= slots
        if sight.wait_seconds < low and slots > 0:
            assert decision.slots <= slots
        if low <= sight.wait_seconds <= high and slots > 0:
            assert decision.slots == slots
