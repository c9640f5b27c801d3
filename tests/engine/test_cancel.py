"""Cancelling: a waiting job never starts; of a running one, one compare-and-set decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.core.job import moment
from jobs.exceptions import JobNotFound, WrongState
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps

WAITING: dict[str, Callable[[Steps], str]] = {
    "ready": lambda steps: steps.enqueue(),
    "scheduled": lambda steps: steps.enqueue(delay_ms=60_000),
    "retry_wait": lambda steps: failed(steps, "retry"),
    "snoozed": lambda steps: failed(steps, "snooze"),
    "handed back": lambda steps: handed_back(steps),
    "parked": lambda steps: parked(steps),
}


def failed(steps: Steps, outcome: str) -> str:
    job_id = steps.enqueue()
    steps.fail(steps.lease(), outcome, delay_ms=60_000)
    return job_id


def handed_back(steps: Steps) -> str:
    job_id = steps.enqueue()
    steps.release(steps.lease())
    return job_id


def parked(steps: Steps) -> str:
    job_id = steps.enqueue()
    steps.park(steps.lease())
    return job_id


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_cancelled_at_once_and_never_starts(steps: Steps, clock: ManualClock, state: str) -> None:
    job_id = WAITING[state](steps)

    job = steps.engine.jobs.cancel(job_id)

    assert (job.state, job.finished_at) == ("cancelled", moment(clock.now_ms()))
    clock.advance(3_600)
    steps.engine.leases.unpark(steps.route, {"t"})
    assert steps.ask().jobs == []
    assert steps.engine.leases.parked(steps.route) == {}
    assert [counted.count("cancelled") for counted in steps.engine.pools.all()] == [1]
    assert steps.engine.stats.types()["t"]["cancelled"] == 1


def test_a_leased_job_is_asked_to_stop_and_its_worker_learns_of_it(steps: Steps) -> None:
    steps.enqueue()
    job = steps.lease(started=True)

    asked = steps.engine.jobs.cancel(job.id)

    assert (asked.state, asked.cancel_requested) == ("leased", True)
    assert steps.engine.leases.renew(steps.route, [(job.id, job.token)], LEASE_MS).cancelled == [(job.id, job.token)]


@pytest.mark.parametrize(
    "end",
    [
        "complete",
        "retry",
        "dead",
        "snooze",
        "cancelled",
        "release",
        "release charged",
        "crash",
        "park",
        "lost unstarted",
        "lost started",
    ],
)
def test_however_the_attempt_ends_the_job_is_cancelled(steps: Steps, clock: ManualClock, end: str) -> None:
    steps.enqueue(max_crashes=1)
    job = steps.lease(started=end != "lost unstarted")
    steps.engine.jobs.cancel(job.id)

    if end == "complete":
        assert steps.complete(job, b'"dropped"') == "cancelled"
    elif end == "park":
        assert steps.park(job) == "cancelled"
    elif end == "crash":
        assert steps.crash(job) == "cancelled"
    elif end.startswith("release"):
        assert steps.release(job, charged=end.endswith("charged")) == "cancelled"
    elif end.startswith("lost"):
        clock.advance(LEASE_MS / 1000)
        steps.engine.leases.recover(steps.route)
    else:
        assert steps.fail(job, end) == "cancelled"

    ended = steps.get(job.id)
    assert (ended.state, ended.result, ended.finished_at) == ("cancelled", None, moment(clock.now_ms()))
    assert steps.ask().jobs == []
    assert steps.engine.stats.types()["t"]["cancelled"] == 1


@pytest.mark.parametrize("state", ["succeeded", "dead", "cancelled"])
def test_an_ended_job_is_not_cancelled_any_more(steps: Steps, state: str) -> None:
    job_id = steps.enqueue()
    if state == "succeeded":
        steps.complete(steps.lease())
    elif state == "dead":
        steps.fail(steps.lease(), "dead")
    else:
        steps.engine.jobs.cancel(job_id)

    with pytest.raises(WrongState, match=state) as refused:
        steps.engine.jobs.cancel(job_id)

    assert refused.value.state == state
    assert steps.state(job_id) == state


def test_a_job_that_is_not_there_cannot_be_cancelled(steps: Steps) -> None:
    with pytest.raises(JobNotFound):
        steps.engine.jobs.cancel(steps.engine.jobs.new_ids("default", 1)[0])


def test_completion_and_cancel_at_once_end_in_one_of_the_two(steps: Steps) -> None:
    """Whoever comes first decides: a completed job refuses the cancel, a cancelled one drops the result."""
    steps.enqueue()
    job = steps.lease()

    assert steps.complete(job, b"1") == "ok"
    with pytest.raises(WrongState):
        steps.engine.jobs.cancel(job.id)

    assert (steps.state(job.id), steps.get(job.id).result) == ("succeeded", 1)
