"""Taking and keeping jobs: a token made by the worker is the fence, and makes every call repeatable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.core.job import LeasedJob, moment
from jobs.engine import Completion, Engine, new_token
from jobs.exceptions import LeaseLost
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps, everything


def test_a_worker_gets_all_it_needs_to_run_a_job(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue(b'{"a":[]}', priority=3, max_retries=9, max_crashes=4, timeout=None, tags=("x",))
    token = new_token()

    [job] = steps.ask(token=token).jobs

    assert job == LeasedJob(
        id=job_id,
        route=steps.route,
        token=token,
        type="t",
        payload=b'{"a":[]}',
        attempt=1,
        errors=0,
        crashes=0,
        fencing_token=1,
        priority=3,
        max_retries=9,
        max_crashes=4,
        timeout=None,
        backoff=job.backoff,
        extras={"tags": ["x"]},
        leased_at=clock.now_ms(),
    )
    assert list(job.backoff) == ["exponential", 1.0, 60.0, 0.2]
    read = steps.get(job_id)
    assert (read.state, read.worker, read.fencing_token) == ("leased", "w", 1)
    assert read.lease_expires_at == moment(clock.now_ms() + LEASE_MS)
    assert not read.is_running
    assert read.attempts == []


def test_the_same_token_again_gives_the_same_jobs(steps: Steps) -> None:
    steps.enqueue_many(5)
    token = new_token()
    first = steps.ask(3, token=token)
    before = everything(steps.engine.store)

    again = steps.ask(3, token=token)

    assert again.jobs == first.jobs
    assert len(again.jobs) == 3
    assert everything(steps.engine.store) == before


def test_two_workers_never_get_the_same_job(steps: Steps) -> None:
    ids = steps.enqueue_many(10)

    one, two = steps.ask(6, worker="one").jobs, steps.ask(6, worker="two").jobs

    assert [job.id for job in one + two] == ids
    assert len({job.token for job in one}) == 1


def test_a_reply_says_what_is_left_and_parked_jobs_do_not_count(steps: Steps) -> None:
    steps.enqueue_many(5)
    steps.park(steps.lease())

    assert steps.ask(2).ready_left == 2


def test_renewing_keeps_a_job_and_not_renewing_loses_it(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(2)
    kept, lost = steps.ask(2).jobs

    clock.advance(6)
    reply = steps.engine.leases.renew(steps.route, [(kept.id, kept.token)], LEASE_MS)
    assert (reply.now, reply.lost, reply.ended, reply.cancelled) == (clock.now_ms(), [], [], [])

    clock.advance(6)
    assert steps.engine.leases.recover(steps.route).released == 1
    assert (steps.state(kept.id), steps.state(lost.id)) == ("leased", "ready")


def test_renewing_tells_what_became_of_each_job(steps: Steps) -> None:
    steps.enqueue_many(4)
    held, done, gone, stopped = steps.lease_all()
    steps.complete(done)
    steps.release(gone)
    steps.engine.jobs.cancel(stopped.id)

    reply = steps.engine.leases.renew(
        steps.route, [(job.id, job.token) for job in (held, done, gone, stopped)] + [("unknown", "x")], LEASE_MS
    )

    assert reply.lost == [(gone.id, gone.token), ("unknown", "x")]
    assert (reply.ended, reply.cancelled) == ([(done.id, done.token)], [(stopped.id, stopped.token)])


def test_renewing_nothing_asks_nobody(engine: Engine, steps: Steps) -> None:
    reply = engine.leases.renew(steps.route, [], LEASE_MS)

    assert (reply.lost, reply.ended, reply.cancelled) == ([], [], [])


def test_the_fencing_token_grows_with_every_lease(steps: Steps) -> None:
    steps.enqueue()
    seen = []
    for _ in range(3):
        job = steps.lease()
        seen.append((job.attempt, job.fencing_token))
        steps.release(job)
    job = steps.lease()
    steps.fail(job, "retry")
    seen.append((steps.lease().attempt, steps.get(job.id).fencing_token))

    assert seen == [(1, 1), (1, 2), (1, 3), (2, 5)]


STALE_CALLS: dict[str, Callable[[Steps, LeasedJob], object]] = {
    "complete": lambda steps, job: steps.complete(job, b"1"),
    "fail to retry": lambda steps, job: steps.fail(job, "retry"),
    "fail for good": lambda steps, job: steps.fail(job, "dead"),
    "snooze": lambda steps, job: steps.fail(job, "snooze"),
    "stop": lambda steps, job: steps.fail(job, "cancelled"),
    "release": lambda steps, job: steps.release(job),
    "release charged": lambda steps, job: steps.release(job, charged=True),
    "crash": lambda steps, job: steps.crash(job),
    "park": lambda steps, job: steps.park(job),
}

WAYS_TO_LOSE: dict[str, Callable[[Steps, LeasedJob, ManualClock], object]] = {
    "taken back and waiting": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
    ),
    "held by another worker": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.lease(worker="other", started=True),
    ),
    "completed by another worker": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.complete(steps.lease(worker="other"), b"2"),
    ),
    "buried by another worker": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.fail(steps.lease(worker="other"), "dead"),
    ),
    "waiting for another worker's retry": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.fail(steps.lease(worker="other"), "retry", delay_ms=5_000),
    ),
    "discarded": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.engine.jobs.cancel(job.id),
        steps.engine.jobs.discard_many([job.id]),
    ),
    "buried and resubmitted": lambda steps, job, clock: (
        clock.advance(60),
        steps.engine.leases.recover(steps.route),
        steps.fail(steps.lease(worker="other"), "dead"),
        steps.engine.jobs.resubmit(job.id),
        steps.lease(worker="third"),
    ),
}


def all_but_the_count_of_refusals(steps: Steps) -> dict[str, Any]:
    found = everything(steps.engine.store)
    for key in [key for key in found if ":live:" in key]:
        found[key] = {figure: number for figure, number in found[key].items() if not figure.startswith(b"stale:")}
    return {key: content for key, content in found.items() if content}


@pytest.mark.parametrize("call", STALE_CALLS)
@pytest.mark.parametrize("way", WAYS_TO_LOSE)
def test_a_worker_that_lost_its_job_changes_nothing(steps: Steps, clock: ManualClock, way: str, call: str) -> None:
    steps.enqueue()
    job = steps.lease(started=True)
    WAYS_TO_LOSE[way](steps, job, clock)
    before = all_but_the_count_of_refusals(steps)

    assert STALE_CALLS[call](steps, job) == "lost"

    assert all_but_the_count_of_refusals(steps) == before


@pytest.mark.parametrize("way", WAYS_TO_LOSE)
def test_nor_does_it_start_or_renew_it_or_tell_its_progress(steps: Steps, clock: ManualClock, way: str) -> None:
    steps.enqueue()
    job = steps.lease(started=True)
    WAYS_TO_LOSE[way](steps, job, clock)
    before = everything(steps.engine.store)

    steps.start(job)
    assert steps.engine.leases.renew(steps.route, [(job.id, job.token)], LEASE_MS).lost == [(job.id, job.token)]
    with pytest.raises(LeaseLost):
        steps.engine.leases.progress(job, 1, 2, "half")

    assert everything(steps.engine.store) == before


@pytest.mark.parametrize("call", STALE_CALLS)
def test_a_guessed_token_is_refused(steps: Steps, call: str) -> None:
    steps.enqueue()
    job = steps.lease()
    job.token = "guessed"
    before = all_but_the_count_of_refusals(steps)

    assert STALE_CALLS[call](steps, job) == "lost"

    assert all_but_the_count_of_refusals(steps) == before


@pytest.mark.parametrize("call", STALE_CALLS)
def test_a_call_that_is_sent_again_changes_nothing_the_second_time(steps: Steps, call: str) -> None:
    steps.enqueue(delay_ms=60_000)  # so that a retry is not the earliest to wake for
    steps.enqueue()
    job = steps.lease(started=True)
    STALE_CALLS[call](steps, job)
    before = everything(steps.engine.store)

    STALE_CALLS[call](steps, job)

    assert everything(steps.engine.store) == before


def test_a_completed_job_shows_its_attempt_and_result(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue()
    job = steps.lease()
    started_at = clock.now_ms()
    steps.start(job)
    assert steps.get(job.id).is_running
    clock.advance(2)

    [answer] = steps.engine.leases.complete(
        steps.route, [Completion(job.id, job.token, "t", started_at, b'{"n":9007199254740993,"e":[]}')]
    )

    assert answer == "ok"
    read = steps.get(job.id)
    assert (read.state, read.result) == ("succeeded", {"n": 9007199254740993, "e": []})
    assert (read.started_at, read.finished_at) == (moment(started_at), moment(clock.now_ms()))
    [attempt] = read.attempts
    assert (attempt.attempt, attempt.worker, attempt.outcome) == (1, "w", "succeeded")


def test_progress_is_shown_while_the_job_runs(steps: Steps) -> None:
    steps.enqueue()
    job = steps.lease(started=True)

    steps.engine.leases.progress(job, 3, 12, "a third")
    assert steps.get(job.id).progress == {"current": 3, "total": 12, "message": "a third"}

    steps.engine.leases.progress(job, 4, None, "x" * 2_000)
    assert steps.get(job.id).progress == {"current": 4, "total": None, "message": "x" * 500}


def test_progress_is_full_once_the_job_has_succeeded(steps: Steps) -> None:
    """AC-10."""
    steps.enqueue()
    job = steps.lease(started=True)
    steps.engine.leases.progress(job, 6, 12, "half")

    steps.engine.leases.complete(steps.route, [Completion(job.id, job.token, "t", 1)])

    assert steps.get(job.id).progress == {"current": 12, "total": 12, "message": "half"}


def test_a_thousand_jobs_are_taken_and_ended_in_one_call_each(steps: Steps) -> None:
    ids = steps.enqueue_many(1_200)

    jobs = steps.ask(5_000).jobs
    answers = steps.engine.leases.complete(steps.route, [Completion(job.id, job.token, "t", 1) for job in jobs])

    assert [job.id for job in jobs] == ids[:1_000]
    assert answers == ["ok"] * 1_000
