"""The order of the line: priority first, then arrival; a job that comes back keeps its place."""

from __future__ import annotations

import random

import pytest

from tests.support.clock import ManualClock
from tests.support.steps import Steps


def drained(steps: Steps, step: int = 7) -> list[str]:
    order: list[str] = []
    while jobs := steps.ask(step).jobs:
        order += [job.id for job in jobs]
    return order


def test_jobs_of_one_priority_come_in_the_order_of_their_arrival(steps: Steps) -> None:
    ids = steps.enqueue_many(30) + [steps.enqueue() for _ in range(10)]

    assert drained(steps) == ids


def test_a_higher_priority_comes_first_and_within_it_the_order_of_arrival(steps: Steps) -> None:
    chance = random.Random(7)
    priorities = [chance.choice([-100, -1, 0, 1, 50, 100]) for _ in range(60)]
    ids = [steps.enqueue(priority=priority) for priority in priorities]

    expected = sorted(range(60), key=lambda position: (-priorities[position], position))

    assert drained(steps) == [ids[position] for position in expected]


def test_delayed_jobs_come_in_the_order_of_their_time_after_those_that_were_ready_before(
    steps: Steps, clock: ManualClock
) -> None:
    third, second = steps.enqueue(delay_ms=30), steps.enqueue(delay_ms=20)
    first = steps.enqueue()
    urgent = steps.enqueue(delay_ms=25, priority=1)

    clock.advance(1)

    assert drained(steps) == [urgent, first, second, third]


@pytest.mark.parametrize("way_back", ["release", "release charged", "crash", "lost lease", "park and unpark"])
def test_a_job_that_comes_back_has_its_old_place(steps: Steps, clock: ManualClock, way_back: str) -> None:
    ids = steps.enqueue_many(4)
    first, second = steps.ask(2).jobs
    steps.complete(second)
    later = steps.enqueue()

    if way_back == "crash":
        steps.crash(first)
    elif way_back == "lost lease":
        clock.advance(60)
        steps.engine.leases.recover(steps.route)
    elif way_back == "park and unpark":
        steps.park(first)
        steps.engine.leases.unpark(steps.route, {"t"})
    else:
        steps.release(first, charged=way_back == "release charged")

    assert drained(steps) == [ids[0], ids[2], ids[3], later]


def test_a_retry_stands_at_the_end_of_the_line(steps: Steps) -> None:
    first, second = steps.enqueue_many(2)
    steps.fail(steps.lease(), "retry")

    assert drained(steps) == [second, first]


def test_a_job_made_ready_by_hand_stands_at_the_end_of_its_priority(steps: Steps) -> None:
    late = steps.enqueue(delay_ms=60_000, priority=3)
    low, high = steps.enqueue(priority=2), steps.enqueue(priority=3)

    steps.engine.jobs.run_now(late)

    assert drained(steps) == [high, late, low]
