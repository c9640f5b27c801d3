"""Jobs that are leased together share one lease: nobody who looks, counts or takes back what was lost can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from jobs.core.job import LeasedJob
from jobs.core.pause import Scope
from jobs.core.states import JobState
from jobs.engine import Completion
from jobs.engine.following import Follower
from jobs.engine.listing import JobFilter
from jobs.store.keys import PartitionKeys, partition_keys
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps

COUNT = 30
LEASED = JobFilter(states=(JobState.LEASED,))
Line = Callable[[list[Any]], list[Any]]


@pytest.fixture
def jobs(steps: Steps) -> list[LeasedJob]:
    """A bundle of them."""
    steps.enqueue_many(COUNT)
    return steps.lease_all()


@pytest.fixture
def keys(steps: Steps) -> PartitionKeys:
    return partition_keys(steps.engine.store.namespace, steps.route)


@pytest.fixture
def client(steps: Steps) -> Any:
    return steps.engine.store.client


def complete(steps: Steps, jobs: list[LeasedJob]) -> list[str]:
    return steps.engine.leases.complete(
        steps.route, [Completion(job.id, job.token, job.type, steps.now_ms()) for job in jobs]
    )


def test_many_untouched_jobs_have_one_lease_and_few_have_one_each(
    steps: Steps, jobs: list[LeasedJob], keys: PartitionKeys, client: Any
) -> None:
    assert (len(jobs), client.zcard(keys.leased)) == (COUNT, 1)

    steps.enqueue_many(steps.engine.leases.bundle_from - 1)
    few = steps.lease_all()
    assert client.zcard(keys.leased) == 1 + len(few)


def test_jobs_that_were_touched_before_keep_leases_of_their_own(steps: Steps, keys: PartitionKeys, client: Any) -> None:
    ids = steps.enqueue_many(COUNT)
    steps.release(steps.lease())

    jobs = steps.lease_all()

    assert [job.id for job in jobs] == ids
    assert [client.zscore(keys.leased, job.id) is not None for job in jobs] == [True] + [False] * (COUNT - 1)


def test_nothing_is_left_of_a_bundle_whose_jobs_have_ended(
    steps: Steps, jobs: list[LeasedJob], keys: PartitionKeys, client: Any
) -> None:
    assert complete(steps, jobs[:-1]) == ["ok"] * (COUNT - 1)
    assert client.exists(keys.leased, keys.bundles, keys.bundled) == 3

    assert complete(steps, jobs[-1:]) == ["ok"]
    assert client.exists(keys.leased, keys.bundles, keys.bundled) == 0


def test_a_job_whose_end_is_told_twice_in_one_call_leaves_its_bundle_once(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock
) -> None:
    complete(steps, [jobs[0], *jobs])
    complete(steps, jobs[:1])
    assert steps.engine.pools.get("default").leased == 0

    steps.enqueue_many(COUNT)
    others = steps.lease_all()
    complete(steps, [others[0]] * COUNT)
    clock.advance(LEASE_MS / 1000)
    assert steps.engine.leases.recover(steps.route, limit=COUNT).released == COUNT - 1


def test_everybody_counts_the_jobs_and_not_the_bundles(steps: Steps, jobs: list[LeasedJob]) -> None:
    complete(steps, jobs[:5])
    steps.engine.pools.configure("default", max_running=COUNT)

    [partition] = steps.engine.partitions.all()
    assert partition.leased == steps.engine.pools.get("default").leased == COUNT - 5
    assert steps.engine.stats.snapshot().states["leased"] == COUNT - 5
    assert steps.engine.caps.load(steps.route).running == COUNT - 5
    steps.enqueue_many(COUNT)
    assert len(steps.lease_all()) == 5
    assert steps.ask().full


def test_a_list_shows_each_of_them_and_a_page_goes_on_where_the_last_ended(steps: Steps, jobs: list[LeasedJob]) -> None:
    first = steps.engine.jobs.page(LEASED, limit=20)
    second = steps.engine.jobs.page(LEASED, limit=20, cursor=first.next_cursor)

    assert sorted(job.id for job in first.items + second.items) == sorted(job.id for job in jobs)
    assert complete(steps, jobs) == ["ok"] * COUNT


def test_a_job_says_until_when_its_bundle_is_leased(
    steps: Steps, jobs: list[LeasedJob], keys: PartitionKeys, client: Any, clock: ManualClock
) -> None:
    job = steps.get(jobs[3].id)

    assert job.lease_expires_at is not None
    assert round(job.lease_expires_at.timestamp() * 1000) == clock.now_ms() + LEASE_MS
    assert client.zcard(keys.leased) == 1, "to read changes nothing"


def test_a_follower_hears_of_each_of_them(steps: Steps, clock: ManualClock) -> None:
    engine = steps.engine
    follower = Follower(engine.store, engine.topology, engine.jobs, LEASED)
    steps.enqueue_many(COUNT)
    jobs = steps.lease_all()

    assert {job.id for job in follower.look().jobs} == {job.id for job in jobs}


def test_a_pause_waits_for_each_of_them(steps: Steps, jobs: list[LeasedJob]) -> None:
    steps.engine.pools.pause("default", by="me")
    assert steps.engine.pauses.settle(Scope("pool", "default"), timeout=0) == COUNT

    for job in jobs:
        steps.start(job)
    assert steps.engine.pauses.settle(Scope("pool", "default"), timeout=0) == 0


def test_the_end_of_a_lease_gives_them_back_in_their_order_as_many_as_are_asked_for(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock
) -> None:
    complete(steps, jobs[:2])
    clock.advance(LEASE_MS / 1000)

    assert steps.engine.leases.recover(steps.route, limit=20).released == 20
    assert steps.engine.leases.recover(steps.route, limit=20).released == COUNT - 2 - 20
    assert [job.id for job in steps.lease_all()] == [job.id for job in jobs[2:]]


def test_a_bundle_that_is_over_before_it_is_opened_leaves_nothing(
    steps: Steps, jobs: list[LeasedJob], keys: PartitionKeys, client: Any
) -> None:
    complete(steps, jobs)
    client.hset(keys.states, mapping={f"other {number}": b"x" for number in range(6_000)})

    assert steps.engine.store.run("bundle_open", keys, [jobs[0].token]) == 0
    assert client.exists(keys.leased, keys.bundles, keys.bundled) == 0


@pytest.mark.parametrize("spoilt", [b"", b"\xc1", b"\x92\xa1x\x01", b"searched x"])
def test_jobs_of_a_bundle_that_cannot_be_read_run_again(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any, spoilt: bytes
) -> None:
    complete(steps, jobs[:2])
    client.hset(keys.bundles, jobs[0].token, spoilt)
    clock.advance(LEASE_MS / 1000)

    assert steps.engine.leases.recover(steps.route).released == COUNT - 2
    assert {job.id for job in steps.lease_all()} == {job.id for job in jobs[2:]}
    assert client.hexists(keys.bundles, jobs[0].token) == 0


@pytest.mark.parametrize(
    "line",
    [
        lambda line: [],
        lambda line: [b"another", *line[1:]],
        lambda line: [True, *line[1:]],
        lambda line: [line[0], b"nan", *line[2:]],
        lambda line: [line[0], b" 7", *line[2:]],
        lambda line: [line[0], None, *line[2:]],
        lambda line: line * 400,
    ],
    ids=["nothing", "another id", "no id", "no number", "a space", "no place", "too many"],
)
def test_no_job_is_lost_where_a_bundle_can_be_read_and_is_wrong(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any, line: Line
) -> None:
    packed = client.hget(keys.bundles, jobs[0].token)
    token, stored = msgspec.msgpack.decode(packed, type=tuple[str, list[str]])
    client.hset(keys.bundles, jobs[0].token, msgspec.msgpack.encode([token, line(stored)]))
    complete(steps, jobs[-2:])
    clock.advance(LEASE_MS / 1000)

    while steps.engine.leases.recover(steps.route, limit=20).released:
        pass
    assert {job.id for job in steps.lease_all()} == {job.id for job in jobs[:-2]}
    assert client.hexists(keys.bundles, jobs[0].token) == 0


def test_what_is_forgotten_of_a_bundle_that_went_bad_does_not_come_back(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any
) -> None:
    complete(steps, jobs[:2])
    steps.engine.jobs.discard_many([job.id for job in jobs[:2]])
    client.hset(keys.bundled, jobs[0].token, b"99")
    clock.advance(LEASE_MS / 1000)

    assert steps.engine.leases.recover(steps.route).released == COUNT - 2


def test_a_job_that_starts_after_the_count_is_lost_keeps_a_lease(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any
) -> None:
    client.delete(keys.bundled)
    steps.start(jobs[0])
    clock.advance(LEASE_MS / 1000)

    reply = steps.engine.leases.recover(steps.route)
    assert (reply.recovered, reply.released) == (1, COUNT - 1)


@pytest.mark.parametrize("lost", ["bundles", "bundled"])
def test_jobs_whose_bundle_is_not_there_any_more_end_like_all_others(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any, lost: str
) -> None:
    client.delete(getattr(keys, lost))

    assert complete(steps, jobs[:2]) == ["ok"] * 2
    assert steps.fail(jobs[2], "retry") == "retry_wait"
    assert steps.release(jobs[3]) == "ready"
    clock.advance(LEASE_MS / 1000)
    assert steps.engine.leases.recover(steps.route).released == COUNT - 4
    assert len(steps.lease_all()) == COUNT - 2
    assert client.exists(keys.bundles, keys.bundled) == 0


@pytest.mark.parametrize("count", [b"x", b"-3", b"1", b"99"])
def test_a_count_that_went_bad_loses_no_job(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any, count: bytes
) -> None:
    client.hset(keys.bundled, jobs[0].token, count)

    assert complete(steps, jobs[:2]) == ["ok"] * 2
    clock.advance(LEASE_MS / 1000)
    assert steps.engine.leases.recover(steps.route).released == COUNT - 2


def test_a_job_of_a_bundle_whose_record_went_bad_is_buried_and_the_others_go_on(
    steps: Steps, jobs: list[LeasedJob], clock: ManualClock, keys: PartitionKeys, client: Any
) -> None:
    client.hset(keys.states, jobs[1].id, b"\xc1")
    complete(steps, jobs[2:])
    clock.advance(LEASE_MS / 1000)

    assert steps.engine.leases.recover(steps.route).released == 2
    assert [job.id for job in steps.lease_all()] == [jobs[1].id, jobs[0].id]


def test_a_token_that_is_used_again_takes_nothing_from_its_bundle(
    steps: Steps, jobs: list[LeasedJob], keys: PartitionKeys, client: Any
) -> None:
    steps.enqueue_many(COUNT)
    others = steps.ask(COUNT, worker="another", token=jobs[0].token).jobs

    assert complete(steps, jobs + others) == ["ok"] * 2 * COUNT
    assert client.exists(keys.leased, keys.bundles, keys.bundled) == 0
