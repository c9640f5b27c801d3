"""Taking back what a worker lost, and not trusting a clock that jumps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.conf import get_settings
from jobs.core.job import Route, moment
from jobs.engine import Engine, RecoverReply
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps, everything

LEASE = LEASE_MS / 1000


def test_nothing_is_taken_before_its_deadline(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    job = steps.lease()
    deadline = clock.now_ms() + LEASE_MS

    clock.advance(LEASE - 0.001)
    assert steps.engine.leases.recover(steps.route) == RecoverReply(0, 0, 0, deadline, clock.now_ms(), False)
    assert steps.state(job.id) == "leased"

    clock.advance(0.001)
    assert steps.engine.leases.recover(steps.route) == RecoverReply(0, 1, 0, None, clock.now_ms(), False)
    assert steps.state(job.id) == "ready"


def test_an_unstarted_job_is_charged_nothing_until_it_was_lost_ten_times_in_a_row(
    steps: Steps, clock: ManualClock
) -> None:
    job_id = steps.enqueue()
    for _ in range(9):
        steps.lease()
        clock.advance(LEASE)
        assert steps.engine.leases.recover(steps.route).released == 1
    assert (steps.get(job_id).attempt, steps.get(job_id).crashes) == (0, 0)

    steps.lease()
    clock.advance(LEASE)

    assert steps.engine.leases.recover(steps.route).recovered == 1
    assert (steps.get(job_id).attempt, steps.get(job_id).crashes) == (1, 1)


def test_a_start_begins_the_count_of_lost_leases_anew(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue()
    for _ in range(9):
        steps.lease()
        clock.advance(LEASE)
        steps.engine.leases.recover(steps.route)
    steps.release(steps.lease(started=True))

    for _ in range(9):
        steps.lease()
        clock.advance(LEASE)
        steps.engine.leases.recover(steps.route)

    assert steps.get(job_id).crashes == 0


def test_recovery_looks_at_the_job_again_when_it_writes(steps: Steps, clock: ManualClock) -> None:
    """The index says that the lease ran out; the record says that the job ended or has another holder."""
    ids = steps.enqueue_many(2)
    done, renewed = steps.lease_all()
    steps.complete(done)
    clock.advance(LEASE)
    steps.engine.leases.renew(steps.route, [(renewed.id, renewed.token)], LEASE_MS)
    steps.engine.store.client.zadd(f"{steps.engine.store.namespace}:{{default.1.0}}:leased", {done.id: 1})

    reply = steps.engine.leases.recover(steps.route)

    assert (reply.recovered, reply.released, reply.buried) == (0, 0, 0)
    assert [steps.state(job_id) for job_id in ids] == ["succeeded", "leased"]
    assert reply.next_deadline == clock.now_ms() + LEASE_MS


def test_eight_recoverers_take_back_each_job_once(steps: Steps, clock: ManualClock) -> None:
    ids = steps.enqueue_many(300, max_crashes=5)
    for job in steps.lease_all():
        steps.start(job)
    clock.advance(LEASE)

    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: steps.engine.leases.recover(steps.route, limit=40), range(24)))

    assert sum(reply.recovered for reply in replies) == 300
    assert {job.crashes for job in steps.engine.jobs.get_many(ids) if job} == {1}


def test_live_leases_do_not_hide_the_ones_that_ran_out(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(50)
    jobs = steps.lease_all()
    clock.advance(LEASE)
    steps.engine.leases.renew(steps.route, [(job.id, job.token) for job in jobs[:47]], LEASE_MS)

    assert steps.engine.leases.recover(steps.route, limit=3).released == 3


class Recoverer:
    """A host that recovers again and again, and tells how long it was by its own clock."""

    def __init__(self, steps: Steps, route: Route) -> None:
        self.steps = steps
        self.route = route
        self.elapsed_ms: int | None = None

    def tick(self, seconds: float = 1.0) -> RecoverReply:
        reply = self.steps.engine.leases.recover(self.route, elapsed_ms=self.elapsed_ms)
        self.elapsed_ms = round(seconds * 1000)
        return reply


def test_a_clock_that_jumps_forward_holds_recovery_for_one_lease(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    job = steps.lease()
    host = Recoverer(steps, steps.route)
    host.tick()
    clock.advance(1)
    host.tick()

    clock.advance(3_600)
    assert host.tick().held
    assert steps.state(job.id) == "leased"

    clock.advance(LEASE - 1)
    steps.engine.leases.renew(steps.route, [(job.id, job.token)], LEASE_MS)
    clock.advance(1)
    reply = host.tick(LEASE)
    assert (reply.held, reply.released, reply.recovered) == (False, 0, 0)
    assert steps.complete(job) == "ok"


def test_after_the_hold_what_was_not_renewed_is_taken(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.lease()
    host = Recoverer(steps, steps.route)
    host.tick()
    clock.advance(3_600)
    assert host.tick().held

    clock.advance(LEASE)
    host.elapsed_ms = LEASE_MS

    assert host.tick().released == 1


def test_a_host_that_slept_is_no_jump(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.lease()
    host = Recoverer(steps, steps.route)
    host.tick(seconds=3_600)

    clock.advance(3_600)

    assert host.tick().released == 1


def test_the_first_look_of_a_new_host_is_no_jump(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.lease()
    Recoverer(steps, steps.route).tick()

    clock.advance(3_600)

    assert Recoverer(steps, steps.route).tick().released == 1


def test_a_clock_that_is_set_back_stands_still_until_it_has_caught_up(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    before = clock.now_ms()
    job = steps.lease()

    clock.advance(-3_600)
    later = steps.enqueue(delay_ms=5_000)
    assert steps.get(later).created_at == moment(before)
    assert steps.engine.leases.recover(steps.route).now == before
    assert steps.engine.leases.renew(steps.route, [(job.id, job.token)], LEASE_MS).now == before

    clock.advance(3_600 + 4.999)
    assert steps.ask().jobs == []
    clock.advance(0.001)
    assert [due.id for due in steps.ask().jobs] == [later]
    clock.advance(LEASE)
    assert steps.engine.leases.recover(steps.route).released == 2


def test_what_is_taken_back_wakes_a_waiting_worker(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    steps.lease()
    while steps.engine.leases.wait_for_work([steps.route], 0.01):
        pass
    clock.advance(LEASE)

    steps.engine.leases.recover(steps.route)

    assert steps.engine.leases.wait_for_work([steps.route], 1) == steps.route


def test_a_partition_without_jobs_has_nothing_to_take_back(steps: Steps) -> None:
    reply = steps.engine.leases.recover(steps.route)

    assert (reply.recovered, reply.released, reply.buried, reply.next_deadline) == (0, 0, 0, None)


@pytest.mark.parametrize("seconds", [1, 9.9])
def test_by_the_servers_own_clock_a_fresh_lease_is_never_taken(store: Store, seconds: float) -> None:
    steps = Steps(Engine(store, get_settings()))
    steps.enqueue()
    steps.ask()
    before = everything(store, without=("clock", "control"))

    steps.engine.leases.recover(steps.route, elapsed_ms=round(seconds * 1000))

    assert everything(store, without=("clock", "control")) == before
