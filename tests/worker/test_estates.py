"""What becomes of the jobs of a worker that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from time import monotonic

import pytest

from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.engine import Engine, new_token
from jobs.worker.child_handle import ChildHandle, HeldLease
from jobs.worker.leases import CrashSettler
from jobs.worker.messages import Opened
from jobs.worker.options import WorkerOptions
from tests.worker.conftest import ROUTE, Parts
from tests.worker.handles import OtherSide, child_handle

LATER = inf
BEFORE = 0.0


class Estate:
    """Four jobs in the hands of one child: three have begun, the last has not."""

    def __init__(self, parts: Parts, child: ChildHandle, other: OtherSide) -> None:
        self.engine: Engine = parts.engine
        parts.enqueue(count=4, max_retries=1)
        token = new_token()
        leased = self.engine.leases.lease(ROUTE, worker="host.1", token=token, limit=10, lease_ms=10_000).jobs
        self.ids = [job.id for job in leased]
        self.memory = other.memory
        self.child = child
        other.ledger.write(Opened(1, token, ROUTE, self.ids))
        self.token = token
        self.settler = CrashSettler(self.engine, WorkerOptions())

    def begin(self, *times_out_at: float) -> None:
        for job_id, moment in zip(self.ids, times_out_at, strict=False):
            self.memory.new_cell().enter(1, job_id, 1_800_000_000_000, moment)

    def cancel(self, number: int) -> None:
        self.engine.jobs.cancel(self.ids[number])
        self.child.cancel([HeldLease(ROUTE, self.ids[number], self.token)], monotonic())

    def settle(self, reason: str = "worker died: killed by SIGKILL (9)") -> list[Job]:
        self.settler.take_over(self.child, reason)
        self.settler.tick()
        assert self.settler.is_done
        return [self.engine.jobs.get(job_id) for job_id in self.ids]


@pytest.fixture
def estate(parts: Parts) -> Iterator[Estate]:
    with child_handle() as (child, other):
        yield Estate(parts, child, other)


def test_a_worker_that_died_is_charged_to_all_that_had_begun(estate: Estate) -> None:
    estate.begin(LATER, BEFORE, LATER)
    *begun, last = estate.settle()
    assert [(job.state, job.attempt, job.crashes) for job in begun] == [(JobState.READY, 1, 1)] * 3
    assert (last.state, last.attempt, last.crashes) == (JobState.READY, 0, 0)


def test_a_worker_that_gave_up_is_charged_without_a_crash(estate: Estate) -> None:
    estate.begin(LATER, LATER, LATER)
    estate.child.has_said_bye = True
    *begun, last = estate.settle()
    assert [(job.state, job.attempt, job.crashes) for job in begun] == [(JobState.READY, 1, 0)] * 3
    assert (last.state, last.attempt) == (JobState.READY, 0)


@pytest.mark.parametrize("said_bye", [True, False])
def test_a_worker_that_was_ended_for_one_job_is_charged_to_that_job_alone(estate: Estate, said_bye: bool) -> None:
    estate.begin(BEFORE, LATER, LATER)
    estate.child.is_condemned, estate.child.has_said_bye = True, said_bye

    guilty, *others = estate.settle()

    assert (guilty.state, guilty.attempt, guilty.crashes) == (JobState.RETRY_WAIT, 1, 0)
    (attempt,) = guilty.attempts
    assert attempt.outcome == "failed"
    assert attempt.error is not None
    assert attempt.error["type"] == "JobTimeout"
    assert "time-out of 30 s and could not be interrupted: its worker was ended" in attempt.error["message"]
    assert [(job.state, job.attempt, job.crashes) for job in others] == [(JobState.READY, 0, 0)] * 3
    assert [job.attempts for job in others] == [[]] * 3


def test_a_cancelled_job_whose_worker_was_ended_is_cancelled(estate: Estate) -> None:
    estate.begin(LATER, LATER, LATER)
    estate.cancel(0)
    estate.child.is_condemned = True

    stopped, *others = estate.settle()

    assert (stopped.state, stopped.attempt, stopped.crashes) == (JobState.CANCELLED, 1, 0)
    assert [job.state for job in others] == [JobState.READY] * 3


def test_a_job_that_has_ended_in_the_last_moment_stays_as_it_is(estate: Estate) -> None:
    estate.begin(BEFORE, LATER, LATER)
    estate.child.is_condemned = True
    estate.engine.jobs.cancel(estate.ids[0])
    estate.engine.leases.release(ROUTE, [(estate.ids[0], estate.token)])

    assert estate.settle()[0].state == JobState.CANCELLED
