"""Pools are sized by how long their jobs wait, by one host at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.core.job import LeasedJob
from jobs.engine import EVERYTHING, Engine, WorkerInfo
from jobs.services.autoscaler import EVERY_SECONDS, IDLE_SECONDS, SHORTEST_SECONDS, Autoscaler
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock

RULE = {
    "min_slots": 1,
    "max_slots": 20,
    "target_wait_seconds": 10.0,
    "tolerance_seconds": 1.0,
    "cooldown_seconds": 30.0,
}


@pytest.fixture
def leases(enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]) -> list[LeasedJob]:
    """Four jobs that run, of many."""
    enqueue(50)
    return lease(4, lease_ms=3_600_000)


@pytest.fixture
def busy(engine: Engine, leases: list[LeasedJob], clock: ManualClock) -> Engine:
    """Four slots of one worker, all in use, and jobs that have waited for 15 seconds."""
    engine.pools.configure("default", slots=4, autoscale=RULE)
    facts: dict[str, Any] = {"host": "h", "hostname": "h", "pid": 1, "started_at_ms": 1, "state": "consuming"}
    engine.workers.beat([WorkerInfo(id="h.1", pools={"default": 4}, **facts)], ttl_ms=3_600_000)
    clock.advance(15)
    return engine


def reasons(engine: Engine) -> list[str]:
    return [made.reason for made in engine.scalings.history("default")]


def test_a_pool_whose_jobs_wait_too_long_gets_more_slots(busy: Engine) -> None:
    scaler = Autoscaler(busy, "host")

    assert scaler.tick() == {"scaled": 1}
    assert busy.pools.slots("default") > 4
    assert scaler.every == EVERY_SECONDS


def test_the_next_change_waits_for_the_cooldown(busy: Engine, clock: ManualClock) -> None:
    scaler = Autoscaler(busy, "host")
    scaler.tick()
    grown = busy.pools.slots("default")

    clock.advance(10)
    assert scaler.tick() == {"scaled": 0}
    assert reasons(busy)[-1] == "cooling_down"
    assert busy.pools.slots("default") == grown


def test_a_dry_run_cools_down_too_and_holds_up_nothing_that_is_carried_out(busy: Engine, clock: ManualClock) -> None:
    one_more = {**RULE, "max_slots": 5}
    busy.pools.configure("default", autoscale={**one_more, "dry_run": True})
    scaler = Autoscaler(busy, "host")
    for seconds in (30, 30, 20):
        clock.advance(seconds)
        scaler.tick()
    made = [(made.is_change, made.times, made.reason) for made in busy.scalings.history("default")]
    assert made == [(True, 2, "deviation_large_above_center"), (False, 1, "cooling_down")]

    busy.pools.configure("default", autoscale=one_more)

    assert scaler.tick() == {"scaled": 1}


def test_an_empty_pool_gives_its_slots_back(engine: Engine, busy: Engine, clock: ManualClock) -> None:
    for job in engine.jobs.page(limit=1000).items:
        engine.jobs.cancel(job.id)

    Autoscaler(busy, "host").tick()

    assert reasons(busy) == ["predicted_wait_zero"]
    assert busy.pools.slots("default") == 3


def test_a_dry_run_changes_nothing(busy: Engine) -> None:
    busy.pools.configure("default", autoscale={**RULE, "dry_run": True})

    assert Autoscaler(busy, "host").tick() == {"scaled": 0}
    assert busy.pools.slots("default") == 4
    assert busy.scalings.history("default")[-1].is_change


def test_a_paused_system_is_left_as_it_is(busy: Engine) -> None:
    busy.pauses.pause(EVERYTHING, by="ana")

    Autoscaler(busy, "host").tick()

    assert reasons(busy) == ["paused"]


def test_a_paused_pool_is_left_as_it_is(busy: Engine) -> None:
    busy.pools.pause("default", by="ana")

    Autoscaler(busy, "host").tick()

    assert reasons(busy) == ["paused"]


def test_a_pool_that_runs_as_much_as_it_may_is_left_as_it_is(busy: Engine) -> None:
    busy.pools.configure("default", max_running=4)

    Autoscaler(busy, "host").tick()

    assert reasons(busy) == ["held_by_max_running"]


def test_jobs_that_nobody_knows_keep_no_slots(engine: Engine, busy: Engine, leases: list[LeasedJob]) -> None:
    unknown = leases[:2]
    for job in engine.jobs.page(limit=1000).items:
        if job.id not in {lease.id for lease in unknown}:
            engine.jobs.cancel(job.id)
    busy.leases.park(ROUTE, [(lease.id, lease.token, lease.type) for lease in unknown])

    Autoscaler(busy, "host").tick()

    assert reasons(busy) == ["predicted_wait_zero"]


def test_a_second_host_decides_nothing_while_the_first_one_lives(busy: Engine, clock: ManualClock) -> None:
    first, second = Autoscaler(busy, "one"), Autoscaler(busy, "two")
    first.tick()
    clock.advance(30)
    assert second.tick() == {"scaled": 0}
    assert len(reasons(busy)) == 1

    clock.advance(10)
    assert second.tick() == {"scaled": 1}, "the first one was not heard of for too long"
    assert first.tick() == {"scaled": 0}


def test_a_look_that_met_a_slot_between_two_jobs_delays_nothing_for_long(
    busy: Engine, leases: list[LeasedJob], lease: Callable[..., Any], clock: ManualClock
) -> None:
    """Three of four slots work: fewer than the rule asks for, and so it is with every job that ends."""
    busy.leases.release(ROUTE, [(leases[0].id, leases[0].token)])
    scaler = Autoscaler(busy, "host")

    assert scaler.tick() == {"scaled": 0}
    assert (reasons(busy), scaler.every) == (["slots_are_free"], SHORTEST_SECONDS)

    lease(1, lease_ms=3_600_000)
    clock.advance(SHORTEST_SECONDS)
    assert scaler.tick() == {"scaled": 1}
    assert scaler.every == EVERY_SECONDS


def test_where_no_pool_is_to_be_sized_nothing_is_asked(engine: Engine) -> None:
    scaler = Autoscaler(engine, "host")

    assert (scaler.tick(), scaler.every) == ({"scaled": 0}, IDLE_SECONDS)
    assert not engine.store.client.exists(f"{engine.store.namespace}:{{settings}}:services")


def test_settings_for_a_pool_that_never_was_are_passed_over(engine: Engine) -> None:
    engine.store.client.hset(
        f"{engine.store.namespace}:{{settings}}:pools",
        "ghost:autoscale",
        b'{"min_slots":1,"max_slots":2,"target_wait_seconds":1}',
    )

    assert Autoscaler(engine, "host").tick() == {"scaled": 0}


@pytest.mark.parametrize(("cooldown", "seconds"), [(0.0, 1.0), (3.0, 3.0), (600.0, EVERY_SECONDS)])
def test_a_rule_that_cools_down_soon_is_looked_at_sooner(engine: Engine, cooldown: float, seconds: float) -> None:
    engine.pools.configure("default", autoscale={**RULE, "cooldown_seconds": cooldown})
    engine.pools.configure("other", autoscale={**RULE, "cooldown_seconds": 700.0})
    scaler = Autoscaler(engine, "host")

    scaler.tick()

    assert scaler.every == seconds
