"""Pools: what stands in line, what serves it, and whether it may be served."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.core.job import iso, moment
from jobs.engine import Engine, Pool, PoolNotFound, WorkerInfo
from jobs.exceptions import OptionInvalid
from jobs.store.keys import PartitionKeys, SettingKeys, partition_keys
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def pool(steps: Steps) -> Pool:
    return steps.engine.pools.get("default")


def control_keys(steps: Steps) -> PartitionKeys:
    return partition_keys(steps.engine.store.namespace, steps.route)


def test_a_pool_comes_into_being_when_it_is_first_used(engine: Engine) -> None:
    assert engine.pools.all() == []

    Steps(engine, "mail").enqueue()
    engine.pools.configure("reports", slots=2)

    assert [(found.name, found.ready, found.slots) for found in engine.pools.all()] == [
        ("mail", 1, 10),
        ("reports", 0, 2),
    ]
    with pytest.raises(PoolNotFound, match="'males'"):
        engine.pools.get("males")
    with pytest.raises(OptionInvalid, match="name of a pool"):
        engine.pools.configure("no{braces}", slots=1)


def test_slots_are_what_people_set_else_what_the_settings_say(engine: Engine) -> None:
    assert engine.pools.slots("mail") == 10

    engine.pools.configure("mail", slots=0)
    assert (engine.pools.slots("mail"), engine.pools.configured()) == (0, {"mail": 0})

    engine.pools.configure("mail", slots=None)
    assert (engine.pools.slots("mail"), engine.pools.configured()) == (10, {})


def test_the_numbers_of_a_pool_are_those_of_its_lines(steps: Steps) -> None:
    steps.bury()
    for _ in range(2):
        steps.enqueue()
    steps.enqueue(delay_ms=1_000)
    running = steps.lease()
    parked = steps.lease()
    steps.park(parked)
    steps.enqueue()
    steps.engine.workers.beat(
        [
            WorkerInfo(
                id=worker, host="h", hostname="b", pid=1, pools={"default": 4}, started_at_ms=1, state="consuming"
            )
            for worker in ("h", "h.1", "h.2")
        ],
        ttl_ms=10_000,
    )

    found = pool(steps)

    assert (found.ready, found.parked, found.scheduled, found.leased, found.dead) == (2, 1, 1, 1, 1)
    assert (found.workers, found.slots_actual) == (2, 8)
    assert set(found.as_dict()) == {
        *("name", "paused", "slots", "slots_actual", "workers", "max_running", "max_pending"),
        *("ready", "scheduled", "retry_wait", "leased", "dead"),
        *("oldest_ready_age_seconds", "predicted_wait_seconds", "throughput_per_second"),
    }
    assert running.id != parked.id


def test_the_oldest_age_counts_the_job_that_more_urgent_ones_overtake(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue(delay_ms=90_000)
    assert pool(steps).oldest_ready_age_seconds is None

    steps.enqueue(priority=-5)
    clock.advance(60)
    steps.enqueue(priority=9)

    assert pool(steps).oldest_ready_age_seconds == 60


def test_nothing_is_leased_from_a_paused_pool_until_it_is_resumed(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue()
    paused_at = iso(moment(clock.now_ms()))

    steps.engine.pools.pause("default", by="ada", reason="deploy")

    assert steps.ask().paused
    found = pool(steps).paused
    assert found is not None
    assert (found.by, found.reason, found.at, found.until) == ("ada", "deploy", paused_at, None)

    steps.engine.pools.resume("default")
    steps.engine.pools.resume("default")

    assert pool(steps).paused is None
    assert steps.lease().id == job_id


def test_a_pause_with_an_end_is_over_by_itself(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.engine.pools.pause("default", by="ada", until=moment(clock.now_ms()) + timedelta(seconds=5))

    clock.advance(4.999)
    assert steps.ask().paused
    assert pool(steps).paused is not None

    clock.advance(0.001)
    assert pool(steps).paused is None
    assert len(steps.ask().jobs) == 1


def test_what_is_taken_back_or_comes_due_in_a_paused_pool_waits_too(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.enqueue(delay_ms=1_000)
    steps.start(steps.lease())
    steps.engine.pools.pause("default", by="ada")

    clock.advance(60)
    assert steps.engine.leases.recover(steps.route).recovered == 1
    assert steps.engine.leases.promote(steps.route).promoted == 1

    reply = steps.ask()
    assert (reply.paused, reply.jobs, reply.ready_left) == (True, [], 2)


@pytest.mark.parametrize("ends_at", [b"soon", b"", b"1e400x"])
def test_a_pause_whose_end_cannot_be_read_lasts_until_it_is_resumed(steps: Steps, ends_at: bytes) -> None:
    steps.enqueue()
    steps.engine.pools.pause("default", by="ada")
    steps.engine.store.client.hset(control_keys(steps).control, "paused_until", ends_at)

    assert steps.ask().paused
    assert pool(steps).paused is not None

    steps.engine.pools.resume("default")
    assert len(steps.ask().jobs) == 1


def test_stored_facts_that_cannot_be_read_do_not_hide_a_pool(steps: Steps) -> None:
    steps.enqueue()
    steps.engine.pools.pause("default", by="ada")
    client, keys = steps.engine.store.client, control_keys(steps)
    client.hset(keys.control, "paused", b"{")
    client.hset(keys.parked, "t", b"many")
    client.hset(keys.counters, "succeeded:t", b"many")
    client.hset(keys.series, "1:succeeded", b"many")
    client.hset(SettingKeys(steps.engine.store.namespace).pools, "default", b"[")

    found = pool(steps)

    assert (found.ready, found.slots, found.parked) == (1, 10, 0)
    assert found.paused is not None
    assert found.paused.by == "unknown"
    assert steps.engine.stats.snapshot().states["ready"] == 1
    assert steps.engine.stats.series() is not None
