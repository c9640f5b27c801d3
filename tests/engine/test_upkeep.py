"""Nothing is kept for ever: retention, claims whose job is gone, traces of workers that are gone."""

from __future__ import annotations

import threading
import time

import pytest

from jobs.core.job import JobSpec, Unique
from jobs.engine import Engine, WorkerInfo
from jobs.engine.holders import Holders
from jobs.store.keys import HOLDER_BUCKETS
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything

WEEK = 7 * 86_400


def sweep(engine: Engine) -> int:
    return sum(engine.upkeep.sweep_claims(bucket) for bucket in range(HOLDER_BUCKETS))


def claims(engine: Engine, kind: str) -> dict[str, str]:
    return dict(pair for bucket in range(HOLDER_BUCKETS) for pair in Holders(engine.store, kind).sweep(bucket))


@pytest.mark.parametrize("end", ["succeeded", "cancelled"])
def test_an_ended_job_is_kept_for_its_retention_and_then_forgotten_whole(
    steps: Steps, clock: ManualClock, end: str
) -> None:
    job_id = steps.enqueue(id="mine")
    steps.fail(steps.lease(started=True), "retry")
    job = steps.lease(started=True)
    steps.engine.leases.progress(job, 1)
    if end == "cancelled":
        steps.engine.jobs.cancel(job_id)
    steps.complete(job, b"1")

    clock.advance(WEEK - 0.001)
    steps.engine.upkeep.prune_partition(steps.route)
    assert steps.get(job_id).state == end

    clock.advance(0.001)
    assert steps.engine.leases.prune(steps.route) == 1
    assert steps.engine.jobs.find(job_id) is None
    assert claims(steps.engine, "ids") == {}
    clock.advance(3601)  # so long its id is kept from producers that were on their way
    steps.engine.upkeep.prune_partition(steps.route)
    kept = {key.rpartition(":")[2] for key in everything(steps.engine.store) if ":live:" not in key}
    assert kept <= {
        "format",
        "topology",
        "sequence",
        "counters",
        "seconds",
        "minutes",
        "news",
        "control",
        "wake",
        "grants",
    }


def test_a_dead_job_is_kept_until_somebody_decides(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.bury()

    clock.advance(10 * WEEK)
    steps.engine.leases.prune(steps.route)

    assert steps.state(job_id) == "dead"


@pytest.mark.parametrize("ttl", [5_000, 2 * WEEK * 1_000])
def test_a_retention_of_its_own_wins(steps: Steps, clock: ManualClock, ttl: int) -> None:
    steps.enqueue_many(2)
    own, default = steps.lease_all()
    steps.complete(own, ttl_ms=ttl)
    steps.complete(default)

    clock.advance(ttl / 1_000 - 0.001)
    steps.engine.leases.prune(steps.route)
    assert steps.engine.jobs.find(own.id)

    clock.advance(0.001)
    steps.engine.leases.prune(steps.route)
    assert steps.engine.jobs.find(own.id) is None
    assert (steps.engine.jobs.find(default.id) is None) == (ttl > WEEK * 1_000)


def test_jobs_that_are_kept_longer_do_not_hide_the_others(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(30)
    for number, job in enumerate(steps.lease_all()):
        steps.complete(job, ttl_ms=9 * WEEK * 1_000 if number < 20 else None)
        clock.advance(0.001)
    clock.advance(WEEK)

    assert steps.engine.leases.prune(steps.route, limit=7) == 10
    assert steps.engine.pools.get("default").succeeded == 20


def test_a_resubmitted_job_is_not_forgotten(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue()
    steps.engine.jobs.cancel(job_id)
    clock.advance(WEEK)
    steps.engine.jobs.resubmit(job_id)

    steps.engine.leases.prune(steps.route)

    assert steps.state(job_id) == "ready"


def test_a_live_jobs_claims_stay(engine: Engine, steps: Steps) -> None:
    [created] = engine.jobs.enqueue(JobSpec(type="t", id="mine", unique=Unique(key="k")), [b"{}"])
    before = everything(engine.store)

    assert sweep(engine) == 0

    assert everything(engine.store) == before
    assert created.id == "mine"


def test_the_key_of_an_ended_job_is_swept_and_its_id_is_kept(engine: Engine, steps: Steps) -> None:
    engine.jobs.enqueue(JobSpec(type="t", id="mine", unique=Unique(key="k")), [b"{}"])
    steps.complete(steps.lease())

    assert sweep(engine) == 1

    assert (claims(engine, "unique"), claims(engine, "ids")) == ({}, {"mine": "default.1.0"})


def test_a_window_that_is_still_open_keeps_its_key(engine: Engine, steps: Steps, clock: ManualClock) -> None:
    engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k", until=60)), [b"{}"])
    steps.complete(steps.lease())

    clock.advance(59)
    assert sweep(engine) == 0
    clock.advance(1)
    assert sweep(engine) == 1


@pytest.mark.parametrize("holder", ["default.1.0", "gone.1.0", "nonsense"])
def test_claims_whose_producer_died_are_swept(engine: Engine, steps: Steps, holder: str) -> None:
    steps.enqueue()
    Holders(engine.store, "ids").take("mine", holder)
    Holders(engine.store, "unique").take("t\0k", engine.jobs.new_ids("default", 1)[0])

    assert sweep(engine) == 2

    assert (claims(engine, "ids"), claims(engine, "unique")) == ({}, {})


def test_a_producer_that_is_between_its_two_steps_is_given_a_moment(engine: Engine, steps: Steps) -> None:
    route = steps.route
    Holders(engine.store, "ids").take("mine", str(route))

    def second_step() -> None:
        time.sleep(0.01)
        engine.jobs.enqueue(JobSpec(type="t", id="mine"), [b"{}"])

    producer = threading.Thread(target=second_step)
    producer.start()
    dropped = sweep(engine)
    producer.join()

    assert dropped == 0
    assert steps.state("mine") == "ready"


def test_what_a_worker_left_behind_goes_with_it(engine: Engine, steps: Steps, clock: ManualClock) -> None:
    facts = WorkerInfo(id="w", host="h", hostname="m", pid=1, pools={"default": 1}, started_at_ms=1, state="consuming")
    steps.enqueue_many(2)
    engine.workers.beat([facts], ttl_ms=30_000)
    steps.ask(worker="w")
    steps.ask(worker="gone")
    assert sorted(engine.leases.grant_holders(steps.route)) == ["gone", "w"]

    engine.upkeep.prune_partition(steps.route)
    assert engine.leases.grant_holders(steps.route) == ["w"]

    clock.advance(60)
    engine.upkeep.prune_partition(steps.route)
    assert engine.leases.grant_holders(steps.route) == []
