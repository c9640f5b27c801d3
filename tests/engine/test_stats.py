"""Numbers for people."""

from __future__ import annotations

import pytest

from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine import Engine, WorkerInfo
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def host(worker_id: str = "h") -> WorkerInfo:
    return WorkerInfo(
        id=worker_id, host="h", hostname="box", pid=7, pools={"default": 3}, started_at_ms=1, state="consuming"
    )


def test_totals_are_kept_for_each_type_with_each_transition(steps: Steps) -> None:
    for _ in range(5):
        steps.enqueue(type="mail")
    steps.enqueue(type="report")
    done, failed, crashed, buried, stopped = (steps.lease() for _ in range(5))
    steps.complete(done)
    steps.fail(failed, "retry", 10_000)
    steps.crash(crashed)
    steps.fail(buried, "dead")
    steps.engine.jobs.cancel(stopped.id)
    steps.complete(stopped)
    steps.engine.jobs.resubmit(buried.id)

    assert steps.engine.stats.types() == {
        "mail": {
            "enqueued": 5,
            "started": 5,
            "succeeded": 1,
            "failed": 2,
            "retried": 1,
            "crashed": 1,
            "dead": 1,
            "cancelled": 1,
            "resubmitted": 1,
        },
        "report": {"enqueued": 1},
    }


def test_the_snapshot_sums_over_all_pools(engine: Engine) -> None:
    Steps(engine, "a").enqueue()
    Steps(engine, "b").enqueue(delay_ms=5_000)
    Steps(engine, "b").enqueue()
    engine.workers.beat([host("h"), host("h.1"), host("h.2")], ttl_ms=30_000)

    snapshot = engine.stats.snapshot()

    assert (snapshot.states["ready"], snapshot.states["scheduled"], snapshot.states["dead"]) == (2, 1, 0)
    assert [pool.name for pool in snapshot.pools] == ["a", "b"]
    assert (snapshot.hosts, snapshot.workers) == (1, 2)


@pytest.mark.parametrize("change", ["enqueue", "lease", "complete", "fail", "pause", "configure", "beat"])
def test_the_version_changes_with_each_change_and_only_then(steps: Steps, change: str) -> None:
    steps.enqueue()
    job = steps.lease() if change in ("complete", "fail") else None
    before = steps.engine.stats.snapshot().version
    assert steps.engine.stats.snapshot().version == before

    match change:
        case "enqueue":
            steps.enqueue()
        case "lease":
            steps.lease()
        case "complete":
            assert job is not None
            steps.complete(job)
        case "fail":
            assert job is not None
            steps.fail(job, "retry")
        case "pause":
            steps.engine.pools.pause("default", by="ada")
        case "configure":
            steps.engine.pools.configure("default", slots=3)
        case "beat":
            steps.engine.workers.beat([host()], ttl_ms=30_000)

    assert steps.engine.stats.snapshot().version != before


def test_what_a_pool_did_is_kept_in_buckets_of_ten_seconds(steps: Steps, clock: ManualClock) -> None:
    for _ in range(2):
        steps.enqueue()
        clock.advance(2)
        steps.complete(steps.lease())
        clock.advance(10)

    history = steps.engine.stats.series("default")

    assert [(bucket["succeeded"], bucket["wait_ms"]) for bucket in history] == [(1, 2_000), (1, 2_000)]
    assert steps.engine.stats.series("default", minutes=0) == []


def test_ended_jobs_are_counted_up_to_a_moment(steps: Steps, clock: ManualClock) -> None:
    steps.bury()
    noon = moment(clock.now_ms())
    clock.advance(1)
    steps.bury()

    count = steps.engine.jobs.count_ended
    assert (count([JobState.DEAD], until=noon), count([JobState.DEAD]), count([JobState.CANCELLED])) == (1, 2, 0)
    assert count([JobState.DEAD], pool="default", until=noon) == 1
    assert count([JobState.DEAD], pool="nowhere") == 0


def test_when_the_next_of_those_that_wait_is_due_over_all_pools(engine: Engine, clock: ManualClock) -> None:
    assert engine.partitions.next_due() == {}
    Steps(engine, "a").enqueue(delay_ms=9_000, priority=7)
    Steps(engine, "b").enqueue(delay_ms=5_000)
    now = clock.now_ms()
    assert now is not None

    assert engine.partitions.next_due() == {"scheduled": moment(now + 5_000)}


def test_how_many_come_a_second_is_told_beside_how_many_end(steps: Steps) -> None:
    for _ in range(30):
        steps.enqueue()
    steps.complete(steps.lease())

    (pool,) = steps.engine.pools.all()

    assert pool.enqueued_per_second == pytest.approx(30 * pool.throughput_per_second, abs=0.05)
    assert "enqueued_per_second" not in pool.as_dict()  # whose fields are promised
