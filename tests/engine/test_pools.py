"""Pools: what stands in line, what serves it, and pauses that hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.core.job import moment
from jobs.engine import Completion, Engine, PoolNotFound, WorkerInfo
from jobs.exceptions import OptionInvalid
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def test_a_pool_counts_its_jobs_by_state(steps: Steps) -> None:
    steps.complete(steps.ask().jobs[0]) if steps.enqueue() else None
    steps.bury()
    steps.engine.jobs.cancel(steps.enqueue())
    steps.enqueue()
    steps.fail(steps.lease(), "retry", delay_ms=60_000)
    steps.enqueue_many(2, delay_ms=60_000)
    steps.enqueue(type="unknown")
    steps.park(steps.lease())
    steps.enqueue_many(4)
    steps.lease()

    pool = steps.engine.pools.get("default")

    assert (pool.ready, pool.parked, pool.leased, pool.scheduled, pool.retry_wait) == (4, 1, 1, 2, 1)
    assert (pool.dead, pool.succeeded, pool.cancelled, pool.skipped, pool.blocked) == (1, 1, 1, 0, 0)


def test_counts_span_all_partitions(engine: Engine) -> None:
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:topology", "wide", b'{"1":1,"2":3}')
    for number in range(30):
        Steps(engine, "wide").enqueue(id=f"job-{number}")

    assert engine.pools.get("wide").ready == 30


def test_pools_are_listed_by_name(engine: Engine) -> None:
    assert engine.pools.all() == []
    for name in ("b", "a", "c.d"):
        Steps(engine, name).enqueue()

    assert [pool.name for pool in engine.pools.all()] == ["a", "b", "c.d"]


def test_the_json_of_a_pool_is_what_the_contract_says(steps: Steps) -> None:
    steps.enqueue()

    assert list(steps.engine.pools.get("default").as_dict()) == [
        "name",
        "paused",
        "slots",
        "slots_actual",
        "workers",
        "max_running",
        "max_pending",
        "ready",
        "scheduled",
        "retry_wait",
        "leased",
        "dead",
        "oldest_ready_age_seconds",
        "predicted_wait_seconds",
        "throughput_per_second",
    ]


def test_the_oldest_waiting_job_tells_how_long_the_line_is(steps: Steps, clock: ManualClock) -> None:
    assert steps.engine.pools.all() == [] or steps.engine.pools.get("default").oldest_ready_age_seconds is None
    steps.enqueue()
    clock.advance(2.5)
    steps.enqueue()

    assert steps.engine.pools.get("default").oldest_ready_age_seconds == 2.5


def test_throughput_is_that_of_the_last_half_minute(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(30)
    for job in steps.lease_all():
        steps.complete(job)

    assert steps.engine.pools.get("default").throughput_per_second == 1.0
    clock.advance(60)
    assert steps.engine.pools.get("default").throughput_per_second == 0.0


def serve(engine: Engine, slots: int, pool: str = "default", host: str = "h") -> None:
    """A live host whose worker has so many slots."""
    common: dict[str, Any] = {"host": host, "hostname": host, "pid": 1, "started_at_ms": 1, "state": "consuming"}
    infos = [WorkerInfo(id=id, pools={pool: slots}, **common) for id in (host, f"{host}.1")]
    engine.workers.beat(infos, ttl_ms=600_000)


def run_for(steps: Steps, clock: ManualClock, seconds: float, jobs: int = 4) -> None:
    """As many jobs, all of which run as long."""
    steps.enqueue_many(jobs)
    leased = [(job, steps.now_ms()) for job in steps.lease_all()]
    clock.advance(seconds)
    done = [Completion(job.id, job.token, job.type, began) for job, began in leased]
    steps.engine.leases.complete(steps.route, done)


class TestPredictedWait:
    """See tests/core/test_prediction.py for the rule; here it is what the rule is told."""

    def test_it_is_what_the_slots_need_for_the_jobs_that_wait(self, steps: Steps, clock: ManualClock) -> None:
        serve(steps.engine, 10)
        run_for(steps, clock, 0.5)
        steps.enqueue_many(100)

        pool = steps.engine.pools.get("default")

        assert (pool.run_seconds, pool.predicted_wait_seconds, pool.load) == (0.5, 5.0, 10.0)

    def test_what_was_measured_once_is_remembered(self, steps: Steps, clock: ManualClock) -> None:
        serve(steps.engine, 10)
        run_for(steps, clock, 0.5)
        clock.advance(300)
        steps.engine.upkeep.fold_figures(steps.route)
        steps.enqueue_many(100)

        assert steps.engine.pools.get("default").predicted_wait_seconds == 5.0

    def test_a_cap_counts_as_fewer_slots(self, steps: Steps, clock: ManualClock) -> None:
        serve(steps.engine, 10)
        run_for(steps, clock, 0.5, jobs=2)
        steps.engine.pools.configure("default", max_running=2)
        steps.enqueue_many(100)

        assert steps.engine.pools.get("default").predicted_wait_seconds == 25.0

    def test_it_is_never_zero_while_jobs_wait_and_zero_when_none_does(self, steps: Steps, clock: ManualClock) -> None:
        """AC-137: a queue of 100 and no samples."""
        steps.engine.topology.ensure("default")
        assert steps.engine.pools.get("default").predicted_wait_seconds == 0.0
        steps.enqueue_many(100)
        assert (steps.engine.pools.get("default").predicted_wait_seconds or 0) > 0

        clock.advance(90)
        assert steps.engine.pools.get("default").predicted_wait_seconds == 90.0

    def test_a_pause_with_an_end_comes_before_it_and_one_without_leaves_it_unknown(
        self, steps: Steps, clock: ManualClock
    ) -> None:
        serve(steps.engine, 10)
        run_for(steps, clock, 0.5)
        steps.enqueue_many(100)

        steps.engine.pools.pause("default", by="ana", until=moment(clock.now_ms()) + timedelta(seconds=60))
        assert steps.engine.pools.get("default").predicted_wait_seconds == 65.0

        steps.engine.pools.pause("default", by="ana")
        assert steps.engine.pools.get("default").predicted_wait_seconds is None

    def test_a_pause_of_each_host_that_serves_it_is_one_too_and_of_some_leaves_fewer_slots(
        self, steps: Steps, clock: ManualClock
    ) -> None:
        serve(steps.engine, 10, host="a")
        serve(steps.engine, 10, host="b")
        run_for(steps, clock, 0.5)
        steps.enqueue_many(100)

        def wait() -> float | None:
            return steps.engine.pools.get("default").predicted_wait_seconds

        assert wait() == 2.5
        steps.engine.workers.pause("a", by="ana")
        assert wait() == 5.0
        assert not steps.engine.pools.get("default").hosts_paused
        steps.engine.workers.pause("b", by="ana", until=moment(clock.now_ms()) + timedelta(seconds=60))
        assert wait() == 65.0
        assert steps.engine.pools.get("default").hosts_paused
        steps.engine.workers.pause("b", by="ana")
        assert wait() is None

    def test_parked_jobs_wait_for_something_else(self, steps: Steps) -> None:
        steps.enqueue()
        steps.park(steps.lease())

        assert steps.engine.pools.get("default").predicted_wait_seconds is None


def test_slots_are_what_an_operator_set_or_else_declared(engine: Engine, store: Any) -> None:
    assert engine.pools.slots("any") == get_settings().slots

    engine.pools.configure("any", slots=3)
    assert (engine.pools.slots("any"), engine.pools.get("any").slots) == (3, 3)
    assert engine.pools.configured() == {"any": 3}

    engine.pools.configure("any", slots=None)
    assert engine.pools.slots("any") == get_settings().slots
    assert engine.pools.configured() == {}


def test_workers_and_their_slots_are_counted_while_they_live(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    common: dict[str, Any] = {"host": "h", "hostname": "h", "pid": 1, "started_at_ms": 1, "state": "consuming"}
    host = WorkerInfo(id="h", pools={"default": 0}, **common)
    children = [WorkerInfo(id=f"h.{n}", pools={"default": 4, "other": 2}, **common) for n in range(2)]
    steps.engine.workers.beat([host, *children], ttl_ms=30_000)

    pool = steps.engine.pools.get("default")
    assert (pool.workers, pool.slots_actual) == (2, 8)

    clock.advance(31)
    pool = steps.engine.pools.get("default")
    assert (pool.workers, pool.slots_actual) == (0, 0)


# Pauses -------------------------------------------------------------------------------------------------------------


def test_nothing_starts_between_pause_and_resume_and_what_runs_goes_on(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(3)
    running = steps.lease()

    steps.engine.pools.pause("default", by="me", reason="maintenance")

    reply = steps.ask(10)
    assert (reply.jobs, reply.paused, reply.ready_left) == ([], True, 2)
    assert steps.complete(running) == "ok"
    pause = steps.engine.pools.get("default").as_dict()["paused"]
    assert pause == {"by": "me", "at": "2027-01-15T08:00:00.000Z", "reason": "maintenance", "until": None}

    clock.advance(86_400)
    assert steps.ask().paused

    steps.engine.pools.resume("default")
    assert (len(steps.ask(10).jobs), steps.engine.pools.get("default").paused) == (2, None)


def test_a_pause_holds_for_jobs_that_come_back(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(3, max_crashes=9)
    lost, released, crashed = steps.ask(3).jobs
    steps.start(lost)
    steps.engine.pools.pause("default", by="me")

    steps.release(released)
    steps.crash(crashed)
    clock.advance(60)
    steps.engine.leases.recover(steps.route)
    steps.engine.leases.promote(steps.route)

    assert (steps.ask(10).jobs, steps.ask().ready_left) == ([], 3)


def test_the_same_token_finds_its_jobs_in_a_pool_that_was_paused_meanwhile(steps: Steps) -> None:
    steps.enqueue()
    jobs = steps.ask(token="same").jobs
    steps.engine.pools.pause("default", by="me")

    assert steps.ask(token="same").jobs == jobs


def test_a_pause_until_a_moment_ends_by_itself(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    until = moment(clock.now_ms()) + timedelta(minutes=1)
    steps.engine.pools.pause("default", by="me", until=until)

    clock.advance(59.999)
    assert steps.ask().paused
    assert steps.engine.pools.get("default").paused is not None

    clock.advance(0.001)
    assert steps.engine.pools.get("default").paused is None
    assert len(steps.ask().jobs) == 1


def test_a_pause_covers_every_partition(engine: Engine) -> None:
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:topology", "wide", b'{"1":1,"2":3}')
    engine.pools.pause("wide", by="me")

    for route in engine.topology.partitions("wide"):
        reply = engine.leases.lease(route, worker="w", token="t", limit=1, lease_ms=1_000)
        assert reply.paused


def test_other_pools_go_on(engine: Engine, steps: Steps) -> None:
    other = Steps(engine, "other")
    steps.enqueue()
    other.enqueue()

    engine.pools.pause("default", by="me")

    assert len(other.ask().jobs) == 1


def test_resuming_a_pool_that_is_not_paused_changes_nothing(steps: Steps) -> None:
    steps.enqueue()

    steps.engine.pools.resume("default")

    assert len(steps.ask().jobs) == 1


def test_a_pool_that_was_never_used_is_not_found(engine: Engine) -> None:
    for ask in (engine.pools.get, engine.pools.resume, lambda name: engine.pools.pause(name, by="me")):
        with pytest.raises(PoolNotFound, match="nowhere"):
            ask("nowhere")
    with pytest.raises(OptionInvalid):
        engine.pools.configure("no good", slots=1)
    assert engine.topology.pools() == []


def test_settings_are_set_one_by_one_and_read_together(engine: Engine) -> None:
    engine.pools.configure("any", slots=3, max_running=7)
    engine.pools.configure("any", max_pending=9)
    engine.pools.configure("any", max_running=None)

    stored = engine.pools.settings()["any"]
    assert (stored.slots, stored.max_running, stored.max_pending, stored.autoscale) == (3, None, 9, None)


def test_a_setting_that_cannot_be_read_counts_as_not_set(engine: Engine) -> None:
    engine.pools.configure("any", slots=3)
    key = f"{engine.store.namespace}:{{settings}}:pools"
    engine.store.client.hset(key, mapping={"any:max_running": b"{?", "any:max_pending": b'"x"', "any:later": b"1"})

    stored = engine.pools.settings()["any"]
    assert (stored.slots, stored.max_running, stored.max_pending) == (3, None, None)
