"""Delays: to the millisecond, and never early."""

from __future__ import annotations

import time

import pytest

from jobs.conf import get_settings
from jobs.core.job import moment
from jobs.engine import Engine
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.steps import Steps


@pytest.mark.parametrize("delay_ms", [1, 7, 999, 60_000, 400 * 86_400_000])
@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_a_delayed_job_is_due_in_its_millisecond(
    steps: Steps, clock: ManualClock, delay_ms: int, priority: int
) -> None:
    job_id = steps.enqueue(delay_ms=delay_ms, priority=priority)
    due = clock.now_ms() + delay_ms
    assert steps.state(job_id) == "scheduled"

    clock.advance((delay_ms - 1) / 1000)
    reply = steps.ask()
    assert (reply.jobs, reply.next_due) == ([], due)

    clock.advance(0.001)
    reply = steps.ask()
    assert ([job.id for job in reply.jobs], reply.next_due) == ([job_id], None)
    assert steps.get(job_id).ready_at == moment(due)


def test_a_moment_wins_over_a_delay(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue(run_at_ms=clock.now_ms() + 5, delay_ms=60_000)

    assert steps.get(job_id).run_at == moment(clock.now_ms() + 5)


@pytest.mark.parametrize("outcome", ["retry", "snooze"])
def test_a_job_that_is_put_off_is_not_early_either(steps: Steps, clock: ManualClock, outcome: str) -> None:
    steps.enqueue()
    job = steps.lease()

    steps.fail(job, outcome, delay_ms=750)
    assert steps.get(job.id).run_at == moment(clock.now_ms() + 750)

    clock.advance(0.749)
    assert steps.ask().jobs == []
    assert steps.engine.leases.promote(steps.route).promoted == 0
    clock.advance(0.001)
    assert [again.id for again in steps.ask().jobs] == [job.id]


def test_promotion_says_when_the_next_is_due(steps: Steps, clock: ManualClock) -> None:
    for delay_ms in (10, 20, 30):
        steps.enqueue(delay_ms=delay_ms)

    clock.advance(0.015)
    reply = steps.engine.leases.promote(steps.route)

    assert (reply.promoted, reply.next_due, reply.now) == (1, clock.now_ms() + 5, clock.now_ms())


def test_promotion_stops_at_its_limit(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(5, delay_ms=1)
    clock.advance(1)

    assert steps.engine.leases.promote(steps.route, limit=2).promoted == 2
    assert steps.engine.leases.promote(steps.route).promoted == 3


def test_by_the_servers_own_clock_nothing_is_early(store: Store) -> None:
    steps = Steps(Engine(store, get_settings()))
    job_id = steps.enqueue(delay_ms=60)
    run_at = steps.get(job_id).run_at.timestamp()

    while not (reply := steps.ask()).jobs:
        assert reply.next_due == round(run_at * 1000)
        time.sleep(0.002)

    seconds, microseconds = store.client.time()
    assert seconds + microseconds / 1_000_000 >= run_at
    assert reply.now >= round(run_at * 1000)
