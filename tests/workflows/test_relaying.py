"""What a relay leaves undone when it dies, and who finishes it: nothing is stuck, nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from jobs.core.job import LeasedJob
from jobs.engine import Engine
from jobs.engine.workflows import CLAIM_MS, CREATE_MS
from jobs.runtime.relaying import Relay
from jobs.services.relay import EVERY_SECONDS, RelayService
from jobs.store.keys import partition_keys
from tests.support.clock import ManualClock
from tests.support.runs import Runs

LEASE_SECONDS = 10.0


class Died(BaseException):
    """The process that relayed is gone."""


def dying_before(step: int) -> Callable[[int], None]:
    def die(now: int) -> None:
        if now == step:
            raise Died

    return die


@pytest.fixture
def service(engine: Engine) -> RelayService:
    """That of another host."""
    return RelayService(engine)


def finish(runs: Runs, run: str, service: RelayService, clock: ManualClock) -> float:
    """Seconds until services alone have brought the run to its end, jobs taking no time."""
    begun = clock.now_ms()
    while not runs.facts(run).is_over:
        clock.advance(0.5)
        assert clock.now_ms() - begun < 60_000, runs.states(run)
        if (clock.now_ms() - begun) % (EVERY_SECONDS * 1000) == 0:
            service.tick()
        runs.run_all()
    return (clock.now_ms() - begun) / 1000


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_a_relay_that_dies_leaves_nothing_stuck_for_long(
    engine: Engine, clock: ManualClock, service: RelayService, step: int
) -> None:
    runs = Runs(engine)
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "on_failure": ["a"]})
    (a,) = runs.lease()
    runs.relay = Relay(engine, dying_before(step))
    with suppress(Died):
        runs.end(a)
    runs.relay = Relay(engine)

    seconds = finish(runs, run, service, clock)

    assert seconds < LEASE_SECONDS + 5
    assert runs.ran == ["a", "b"]
    service.tick()
    assert engine.outbox.routes_with_news(engine.topology.partitions()) == []


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_start_that_dies_once_the_run_is_written_down_is_finished(
    engine: Engine, clock: ManualClock, service: RelayService, step: int
) -> None:
    runs = Runs(engine)
    runs.relay = Relay(engine, dying_before(step))
    with suppress(Died):
        runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, id="mine")
    runs.relay = Relay(engine)

    assert finish(runs, "mine", service, clock) < LEASE_SECONDS + 5
    assert runs.ran == ["a", "b"]


def test_a_run_that_was_never_written_down_to_its_end_is_forgotten(
    engine: Engine, clock: ManualClock, service: RelayService
) -> None:
    engine.workflows.create("half", "test", {"payload": {}})

    for _ in range(20):
        clock.advance(4)
        service.tick()

    assert engine.workflows.find("half") is None
    assert engine.workflows.newest() == []


def test_a_relay_that_wakes_up_late_makes_no_second_job(runs: Runs, clock: ManualClock) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    late: list[str] = []

    def sleep(step: int) -> None:
        if step == 3 and not late:
            late.append("asleep")
            clock.advance((CLAIM_MS + 1) / 1000)
            Runs(runs.engine).tell([a])  # somebody else is faster
            runs.run_all()
            (b,) = [view for view in runs.nodes(run).values() if view.key == "b"]
            assert b.job is not None
            runs.engine.jobs.discard(b.job)  # so that its id would be free

    runs.relay = Relay(runs.engine, sleep)
    runs.end(a)
    runs.run_all()

    assert runs.ran == ["a", "b"]
    assert CREATE_MS < CLAIM_MS


def test_a_job_that_a_dead_relay_has_made_is_not_made_again(runs: Runs, clock: ManualClock) -> None:
    runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.relay = Relay(runs.engine, dying_before(4))
    with suppress(Died):
        runs.end(a)
    runs.relay = Relay(runs.engine)
    (b,) = runs.lease()

    clock.advance(CLAIM_MS / 1000 + 1)
    runs.tell([a])

    assert runs.lease() == []
    runs.end(b)
    assert runs.ran == ["a", "b"]


def test_a_delayed_job_that_a_dead_relay_has_made_runs_once_although_it_is_due_by_now(
    runs: Runs, clock: ManualClock
) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"], "delay": 3})
    (a,) = runs.lease()
    runs.relay = Relay(runs.engine, dying_before(4))
    with suppress(Died):
        runs.end(a)
    runs.relay = Relay(runs.engine)
    clock.advance(4)
    (b,) = runs.lease()

    clock.advance(CLAIM_MS / 1000)
    runs.tell([a])  # whoever finishes it finds the job
    clock.advance(10)

    assert runs.lease() == []
    runs.end(b)
    assert runs.facts(run).state == "succeeded"
    assert runs.engine.stats.types()["test.node"]["enqueued"] == 2


def test_what_one_relay_was_handed_another_leaves_alone(runs: Runs) -> None:
    run = runs.start(*({"key": key} for key in "ab"), {"key": "c", "depends_on": ["a", "b"], "join": "any"})
    jobs = runs.lease()
    runs.end(jobs[0], tell=False)
    runs.end(jobs[1], tell=False)
    (news,) = runs.engine.outbox.read(jobs[0].route, [jobs[0].id])

    handed = runs.engine.workflows.step(run, [news]).handed
    reply = runs.engine.workflows.step(run)

    assert [one.node.key for one in handed] == ["c"]
    assert (reply.handed, reply.claimed) == ([], 1)


def test_news_stay_in_the_outbox_while_a_dead_relay_may_hold_what_followed(runs: Runs, clock: ManualClock) -> None:
    runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.relay = Relay(runs.engine, dying_before(3))
    with suppress(Died):
        runs.end(a)
    runs.relay = Relay(runs.engine)

    runs.tell([a])
    assert len(runs.engine.outbox.read(a.route, [a.id])) == 1

    clock.advance(CLAIM_MS / 1000 + 1)
    runs.tell([a])
    assert runs.engine.outbox.read(a.route, [a.id]) == []
    runs.run_all()
    assert runs.ran == ["a", "b"]


def test_a_job_that_is_gone_counts_as_dead(runs: Runs, clock: ManualClock, service: RelayService) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "on_failure": ["a"]})
    (a,) = runs.lease()
    forget(runs, a)

    clock.advance(70)
    service.tick()

    view = runs.nodes(run)["a"]
    assert (view.state, view.error and view.error["type"]) == ("dead", "JobGone")
    runs.run_all()
    assert runs.facts(run).state == "succeeded"


def forget(runs: Runs, job: LeasedJob) -> None:

    keys, client = partition_keys(runs.engine.store.namespace, job.route), runs.engine.store.client
    for key in (keys.bodies, keys.states, keys.nodes):
        client.hdel(key, job.id)
    client.zrem(keys.leased, job.id)


def test_an_end_whose_news_were_lost_is_found_by_its_run(runs: Runs, clock: ManualClock, service: RelayService) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.end(a, tell=False)

    runs.engine.store.client.delete(partition_keys(runs.engine.store.namespace, a.route).outbox)

    clock.advance(70)
    service.tick()
    runs.run_all()

    assert runs.states(run) == {"a": "succeeded", "b": "succeeded"}
