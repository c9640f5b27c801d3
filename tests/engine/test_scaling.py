"""Who may autoscale, and what is remembered of it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.autoscale import Decision, Sighting
from jobs.engine import Engine, Scaling
from jobs.engine.scaling import KEPT
from jobs.exceptions import LeaseLost
from tests.support.clock import ManualClock
from tests.support.steps import Steps

RULE = {"min_slots": 1, "max_slots": 20, "target_wait_seconds": 5.0}


@pytest.fixture
def token(engine: Engine, steps: Steps) -> str:
    steps.enqueue()
    engine.pools.configure("default", slots=4, autoscale=RULE)
    token = engine.scalings.take("host", 30_000)
    assert token is not None
    return token


def decide(engine: Engine, token: str, slots: int, *, at: int = 0, dry_run: bool = False, before: int = 4) -> Scaling:
    seen = Sighting(slots=before, workers=1, ready=3, oldest_wait_seconds=2.0)
    decision = Decision(slots=slots, reason="above_upper_boundary" if slots != before else "in_tolerance_band")
    return engine.scalings.decided(token, "default", seen, decision, at_ms=at, dry_run=dry_run)


def test_one_host_at_a_time_has_the_right(engine: Engine, clock: ManualClock) -> None:
    first = engine.scalings.take("one", 30_000)
    assert first
    assert engine.scalings.take("two", 30_000) is None

    clock.advance(29)
    assert engine.scalings.take("one", 30_000) == first, "it is renewed under the same token"
    clock.advance(29)
    assert engine.scalings.take("two", 30_000) is None
    clock.advance(1)
    assert engine.scalings.take("two", 30_000) not in (None, first)
    assert engine.scalings.take("one", 30_000) is None


def test_a_host_that_was_frozen_past_its_right_writes_nothing(engine: Engine, token: str, clock: ManualClock) -> None:
    clock.advance(31)
    with pytest.raises(LeaseLost):
        decide(engine, token, 9)
    engine.scalings.take("other", 30_000)
    with pytest.raises(LeaseLost):
        decide(engine, token, 9)

    assert engine.scalings.history("default") == []
    assert engine.pools.slots("default") == 4


def test_a_decision_is_carried_out_and_remembered_with_its_reason(engine: Engine, token: str) -> None:
    engine.news.wait(0)

    decide(engine, token, 9, at=1_000)

    assert engine.pools.get("default").slots == 9
    assert [item.topic for item in engine.news.wait(1)] == ["pools"]
    [made] = engine.scalings.history("default")
    assert (made.before, made.after, made.reason, made.ready) == (4, 9, "above_upper_boundary", 3)
    assert made.as_dict()["at"] == "1970-01-01T00:00:01.000Z"


def test_a_dry_run_is_remembered_and_not_carried_out(engine: Engine, token: str) -> None:
    decide(engine, token, 9, dry_run=True)

    assert engine.pools.get("default").slots == 4
    assert engine.scalings.history("default")[0].dry_run


def test_the_same_decision_again_and_again_is_one_entry(engine: Engine, token: str) -> None:
    for at in (1, 2, 3):
        decide(engine, token, 4, at=at)

    [made] = engine.scalings.history("default")
    assert (made.times, made.at_ms, made.last_at_ms) == (3, 1, 3)


def test_the_history_is_bounded(engine: Engine, token: str) -> None:
    for number in range(KEPT + 5):
        decide(engine, token, 5 + number % 2)

    assert len(engine.scalings.history("default")) == KEPT


def test_slots_of_an_autoscaled_pool_stay_within_its_bounds_whatever_was_set(engine: Engine, token: str) -> None:
    def slots(**settings: Any) -> int:
        engine.pools.configure("default", **settings)
        return engine.pools.slots("default")

    assert slots(slots=100) == 20
    assert slots(slots=0) == 1
    assert slots(slots=100, autoscale={**RULE, "dry_run": True}) == 100
    assert slots(autoscale=None, slots=7) == 7


def test_bytes_that_nobody_can_read_are_no_history(engine: Engine, token: str) -> None:
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:scalings", "default", b"?")

    assert engine.scalings.history("default") == []
