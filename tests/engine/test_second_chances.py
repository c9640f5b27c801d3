"""What people do with jobs: run now, resubmit, discard."""

from __future__ import annotations

import pytest

from jobs.core.job import moment
from jobs.exceptions import JobNotFound, PayloadTooLarge, WrongState
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything


@pytest.mark.parametrize("outcome", [None, "retry", "snooze"])
def test_a_job_that_waits_for_a_time_can_be_run_now(steps: Steps, clock: ManualClock, outcome: str | None) -> None:
    job_id = steps.enqueue(delay_ms=0 if outcome else 60_000)
    if outcome:
        steps.fail(steps.lease(), outcome, delay_ms=60_000)

    job = steps.engine.jobs.run_now(job_id)

    assert (job.state, job.ready_at) == ("ready", moment(clock.now_ms()))
    assert steps.lease().id == job_id


@pytest.mark.parametrize("state", ["ready", "leased", "succeeded", "dead", "cancelled"])
def test_no_other_job_can_be_run_now(steps: Steps, state: str) -> None:
    job_id = steps.enqueue()
    if state == "cancelled":
        steps.engine.jobs.cancel(job_id)
    elif state != "ready":
        job = steps.lease()
        if state == "succeeded":
            steps.complete(job)
        elif state == "dead":
            steps.fail(job, "dead")
    before = everything(steps.engine.store)

    with pytest.raises(WrongState) as refused:
        steps.engine.jobs.run_now(job_id)

    assert refused.value.state == state
    assert everything(steps.engine.store) == before


def test_a_dead_job_is_resubmitted_with_fresh_budgets_and_its_history(steps: Steps, clock: ManualClock) -> None:
    job_id = steps.enqueue(b'{"n":1}', max_crashes=2)
    steps.crash(steps.lease())
    steps.fail(steps.lease(), "retry")
    steps.fail(steps.lease(), "dead", error=b'{"type":"E","message":"m","traceback":""}')
    clock.advance(5)

    job = steps.engine.jobs.resubmit(job_id)

    assert (job.state, job.attempt, job.crashes, job.resubmissions) == ("ready", 0, 0, 1)
    assert (job.error, job.finished_at, job.started_at) == (None, None, None)
    assert [attempt.outcome for attempt in job.attempts] == ["crashed", "failed", "failed"]
    again = steps.lease()
    assert (again.payload, again.attempt, again.errors, again.crashes) == (b'{"n":1}', 1, 0, 0)
    assert again.fencing_token == 4
    assert again.resubmissions == 1


def test_a_resubmitted_job_can_have_another_payload(steps: Steps) -> None:
    job_id = steps.bury(payload=b'{"n":1}', tags=("x",))

    steps.engine.jobs.resubmit(job_id, b'{"n":[]}')

    assert steps.lease().payload == b'{"n":[]}'
    assert steps.get(job_id).tags == ["x"]


def test_a_payload_that_is_too_large_is_refused_and_the_job_stays_dead(steps: Steps) -> None:
    job_id = steps.bury()

    with pytest.raises(PayloadTooLarge):
        steps.engine.jobs.resubmit(job_id, b"x" * 262_145)

    assert steps.state(job_id) == "dead"


def test_a_cancelled_job_can_be_resubmitted_too_and_is_not_stopped_again(steps: Steps) -> None:
    steps.enqueue()
    job = steps.lease()
    steps.engine.jobs.cancel(job.id)
    steps.release(job)

    resubmitted = steps.engine.jobs.resubmit(job.id)

    assert (resubmitted.state, resubmitted.cancel_requested) == ("ready", False)
    assert steps.complete(steps.lease()) == "ok"


@pytest.mark.parametrize("state", ["ready", "scheduled", "leased", "succeeded", "retry_wait"])
def test_a_job_that_lives_or_succeeded_is_not_resubmitted(steps: Steps, state: str) -> None:
    job_id = steps.enqueue(delay_ms=60_000 if state == "scheduled" else 0)
    if state in ("leased", "succeeded", "retry_wait"):
        job = steps.lease()
        if state == "succeeded":
            steps.complete(job)
        elif state == "retry_wait":
            steps.fail(job, "retry", delay_ms=60_000)

    with pytest.raises(WrongState) as refused:
        steps.engine.jobs.resubmit(job_id)

    assert refused.value.state == state
    assert steps.state(job_id) == state


def test_many_are_resubmitted_at_once_and_each_answers_for_itself(steps: Steps) -> None:
    dead = [steps.bury() for _ in range(3)]
    live = steps.enqueue()

    outcome = steps.engine.jobs.resubmit_many([*dead, live, "unknown"])

    assert [outcome[job_id] for job_id in dead] == [None, None, None]
    assert isinstance(outcome[live], WrongState)
    assert isinstance(outcome["unknown"], JobNotFound)
    assert [job.id for job in steps.lease_all()] == [live, *dead]


@pytest.mark.parametrize("end", ["succeeded", "dead", "cancelled"])
def test_a_discarded_job_leaves_nothing_but_a_void_of_its_id_for_an_hour(
    steps: Steps, clock: ManualClock, end: str
) -> None:
    steps.enqueue(delay_ms=1)
    before = {key: content for key, content in everything(steps.engine.store).items() if ":bodies" in key}
    job_id = steps.enqueue(id="mine")
    job = steps.lease(started=True)
    steps.engine.leases.progress(job, 1)
    steps.fail(job, "retry")
    job = steps.lease()
    if end == "succeeded":
        steps.complete(job, b"1", ttl_ms=5_000)
    elif end == "dead":
        steps.fail(job, "dead")
    else:
        steps.engine.jobs.cancel(job_id)
        steps.release(job)

    steps.engine.jobs.discard(job_id)

    assert steps.engine.jobs.find(job_id) is None
    clock.advance(3_601)
    steps.engine.leases.tidy(steps.route, [])
    after = everything(steps.engine.store)
    assert {key: content for key, content in after.items() if ":bodies" in key} == before
    kept = [
        key for key in after if any(what in key for what in ("attempts", "results", "progress", "expiring", "ids."))
    ]
    assert kept == []


def test_a_live_job_is_not_discarded(steps: Steps) -> None:
    ready, leased, scheduled = steps.enqueue(priority=-1), steps.enqueue(), steps.enqueue(delay_ms=5)
    steps.lease()

    outcome = steps.engine.jobs.discard_many([ready, leased, scheduled])

    assert [type(outcome[job_id]) for job_id in (ready, leased, scheduled)] == [WrongState] * 3
    assert [steps.state(job_id) for job_id in (ready, leased, scheduled)] == ["ready", "leased", "scheduled"]
