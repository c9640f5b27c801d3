"""Failures and crashes are counted apart; every attempt is remembered."""

from __future__ import annotations

import json

import pytest

from jobs.core.job import moment
from jobs.engine import Engine
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def test_crashes_bury_a_job_that_has_all_its_retries_left(steps: Steps) -> None:
    job_id = steps.enqueue(max_retries=10, max_crashes=3)

    answers = [steps.crash(steps.lease(started=True)) for _ in range(3)]

    assert answers == ["ready", "ready", "dead"]
    job = steps.get(job_id)
    assert (job.state, job.crashes, job.attempt) == ("dead", 3, 3)
    assert job.error == {"type": "WorkerCrashed", "message": "killed by SIGKILL (9)", "traceback": ""}
    assert [attempt.outcome for attempt in job.attempts] == ["crashed"] * 3


def test_failures_do_not_touch_the_crash_budget(steps: Steps) -> None:
    steps.enqueue(max_crashes=1)
    for _ in range(5):
        steps.fail(steps.lease(started=True), "retry")

    job = steps.lease()

    assert (job.errors, job.crashes, job.attempt) == (5, 0, 6)


def test_crashes_do_not_touch_the_error_budget(steps: Steps) -> None:
    steps.enqueue(max_retries=0, max_crashes=3)
    steps.crash(steps.lease())

    job = steps.lease()

    assert (job.errors, job.crashes, job.attempt) == (0, 1, 2)


def test_a_job_without_a_crash_budget_is_buried_by_its_first_crash(steps: Steps) -> None:
    job_id = steps.enqueue(max_crashes=1)

    assert steps.crash(steps.lease()) == "dead"
    assert steps.state(job_id) == "dead"


def test_handing_back_is_free_and_putting_off_too(steps: Steps) -> None:
    steps.enqueue()
    for _ in range(4):
        steps.release(steps.lease(started=True))
    steps.fail(steps.lease(), "snooze")
    steps.park(steps.lease())
    steps.engine.leases.unpark(steps.route, {"t"})

    job = steps.lease()

    assert (job.attempt, job.errors, job.crashes, job.fencing_token) == (1, 0, 0, 7)
    assert steps.get(job.id).attempts == []


def test_the_history_tells_of_every_attempt(steps: Steps, clock: ManualClock) -> None:
    error = {"type": "ValueError", "message": "no", "traceback": "…"}
    job_id = steps.enqueue()
    times = []
    for end in ("retry", "crash", "release", "retry"):
        job = steps.lease(started=True)
        started = clock.now_ms()
        clock.advance(1)
        if end == "retry":
            steps.fail(job, "retry", error=json.dumps(error).encode())
        elif end == "crash":
            steps.crash(job, "gone")
        else:
            steps.release(job, charged=True)
        times.append((started, clock.now_ms()))

    ended = steps.get(job_id)

    assert [attempt.attempt for attempt in ended.attempts] == [1, 2, 3, 4]
    assert [attempt.outcome for attempt in ended.attempts] == ["failed", "crashed", "released", "failed"]
    assert [attempt.worker for attempt in ended.attempts] == ["w"] * 4
    assert ended.attempts[0].error == ended.attempts[3].error == ended.error == error
    assert ended.attempts[1].error == {"type": "WorkerCrashed", "message": "gone", "traceback": ""}
    assert ended.attempts[2].error is None
    assert [attempt.finished_at for attempt in ended.attempts] == [moment(end) for _, end in times]


def test_only_the_newest_attempts_are_kept(steps: Steps) -> None:
    kept = steps.engine.settings.attempts_kept
    job_id = steps.enqueue()
    for number in range(kept + 5):
        steps.fail(steps.lease(), "retry", error=b'{"type":"E","message":"%d","traceback":""}' % number)

    job = steps.get(job_id)

    assert [attempt.attempt for attempt in job.attempts] == list(range(6, kept + 6))
    assert job.error is not None
    assert job.error["message"] == str(kept + 4)


@pytest.mark.parametrize("size", [255, 256, 65_535, 65_536, 200_000])
def test_an_error_of_any_size_is_kept_whole(steps: Steps, size: int) -> None:
    job_id = steps.enqueue()
    error = json.dumps({"type": "E", "message": "é" * size, "traceback": "\x00"}).encode()

    steps.fail(steps.lease(), "dead", error=error)

    assert steps.get(job_id).error == json.loads(error)


def test_a_worker_that_dies_without_a_word_is_charged_when_its_lease_runs_out(
    engine: Engine, steps: Steps, clock: ManualClock
) -> None:
    job_id = steps.enqueue(max_crashes=2)
    for _ in range(2):
        steps.lease(started=True)
        clock.advance(11)
        engine.leases.recover(steps.route)

    job = steps.get(job_id)

    assert (job.state, job.crashes) == ("dead", 2)
    assert job.error is not None
    assert job.error["type"] == "WorkerLost"
