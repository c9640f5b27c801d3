"""The raw reader finds every kind of disorder that can be made by hand, and none in what the engine leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.core.job import JobSpec
from jobs.engine import Completion, Engine, new_token
from jobs.store.keys import PartitionKeys, partition_keys
from tests.faults.structure import read_structure

Disorder = Callable[[Engine, PartitionKeys, str], object]

DISORDERS: dict[str, tuple[Disorder, str]] = {
    "a job in no line": (lambda engine, keys, job: engine.store.client.zrem(keys.ready, job), "in 0 lines"),
    "a job in two lines": (lambda engine, keys, job: engine.store.client.zadd(keys.dead, {job: 1}), "in 2 lines"),
    "a line without a body": (lambda engine, keys, job: engine.store.client.hdel(keys.bodies, job), "without a body"),
    "a body that is none": (
        lambda engine, keys, job: engine.store.client.hset(keys.bodies, job, b"x"),
        "cannot be read",
    ),
    "a wrong place": (lambda engine, keys, job: engine.store.client.zadd(keys.ready, {job: 5}), "lost its priority"),
    "a wrong line": (
        lambda engine, keys, job: (
            engine.store.client.zrem(keys.ready, job),
            engine.store.client.zadd(keys.succeeded, {job: 1}),
        ),
        "without a record",
    ),
    "a result of nothing": (
        lambda engine, keys, job: engine.store.client.hset(keys.results, "nobody", b"1"),
        "in results without a body",
    ),
    "a wrong count of parked jobs": (
        lambda engine, keys, job: engine.store.client.hset(keys.parked, "mail", 3),
        "counts",
    ),
    "a void that is not listed": (
        lambda engine, keys, job: engine.store.client.hset(keys.bodies, "ghost", b""),
        "not in the list of voided ids",
    ),
    "two wake tokens": (lambda engine, keys, job: engine.store.client.rpush(keys.wake, "1", "1"), "tokens"),
}


def test_what_the_engine_leaves_is_in_order(engine: Engine) -> None:
    first, *_ = engine.jobs.enqueue(JobSpec(type="mail", priority=7), [b"{}"] * 5)
    engine.jobs.enqueue(JobSpec(type="mail", delay_ms=5000), [b"{}"])
    route = engine.topology.route_for("default")
    token = new_token()
    (leased,) = engine.leases.lease(route, worker="one", token=token, limit=1, lease_ms=1000).jobs
    engine.leases.complete(route, [Completion(leased.id, token, "mail", leased.leased_at, b"1")])
    structure = read_structure(engine.store.client, engine.store.namespace)
    assert structure.problems == []
    assert structure.jobs[first.id].state == "succeeded"
    assert len(structure.jobs) == 6
    assert structure.counters["enqueued:mail"] == 6


@pytest.mark.parametrize("name", DISORDERS)
def test_disorder_is_found(name: str, engine: Engine) -> None:
    disturb, told = DISORDERS[name]
    (job,) = engine.jobs.enqueue(JobSpec(type="mail", priority=7), [b"{}"])
    disturb(engine, partition_keys(engine.store.namespace, engine.topology.route_for("default")), job.id)
    problems = read_structure(engine.store.client, engine.store.namespace).problems
    assert any(told in problem for problem in problems), problems


def test_a_key_that_nobody_owns_is_found(engine: Engine) -> None:
    key = f"{engine.store.namespace}:leak"
    engine.store.client.set(key, "1")
    try:
        assert read_structure(engine.store.client, engine.store.namespace).problems
    finally:
        engine.store.client.delete(key)
