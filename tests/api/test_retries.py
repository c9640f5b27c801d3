"""Retries, dead letters and uniqueness, from the enqueue to the end, on the real store."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from jobs import Context, Fixed, JobType, Retry, get_job, job, pools, resubmit, shown_payload
from jobs.core.states import JobState
from jobs.engine import Engine
from jobs.exceptions import DuplicateJob
from jobs.testing import drain


def failing(times: int, **options: Any) -> tuple[JobType[..., Any], list[int]]:
    """A job type that fails so many times, and the numbers of its attempts."""
    attempts: list[int] = []

    @job("flaky.job", **options)
    def flaky(*, ctx: Context) -> str:
        attempts.append(ctx.attempt)
        if len(attempts) <= times:
            raise RuntimeError("not yet")
        return "done"

    return flaky, attempts


def test_the_last_retry_may_succeed() -> None:
    """AC-34: nine failures, and the tenth attempt succeeds."""
    flaky, attempts = failing(9, max_retries=10)
    handle = flaky.enqueue()
    drain(skip_waits=True)

    assert attempts == list(range(1, 11))
    assert handle.refresh().state == JobState.SUCCEEDED


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_a_job_is_tried_once_more_than_it_may_be_retried(max_retries: int) -> None:
    """AC-38 and AC-41."""
    flaky, attempts = failing(99, max_retries=max_retries, backoff=Fixed(0.01))
    handle = flaky.enqueue()
    drain(skip_waits=True)

    dead = handle.refresh()
    assert len(attempts) == max_retries + 1
    assert dead.state == JobState.DEAD
    assert [attempt.outcome for attempt in dead.attempts] == ["failed"] * (max_retries + 1)


def test_the_options_of_the_call_bound_the_retries() -> None:
    flaky, attempts = failing(99, max_retries=5)
    flaky.using(max_retries=0).enqueue()
    drain(skip_waits=True)

    assert attempts == [1]


def test_a_retry_waits_for_its_backoff() -> None:
    flaky, _ = failing(1, backoff=Fixed(100))
    handle = flaky.enqueue()
    drain()

    waiting = handle.refresh()
    assert waiting.state == JobState.RETRY_WAIT
    assert waiting.attempts[0].finished_at is not None
    assert 99.9 <= (waiting.run_at - waiting.attempts[0].finished_at).total_seconds() <= 101


def test_the_handler_may_ask_for_its_own_wait() -> None:
    @job("polite.job", backoff=Fixed(1))
    def polite() -> None:
        raise Retry(after=500)

    handle = polite.enqueue()
    drain()

    waiting = handle.refresh()
    assert waiting.attempts[0].finished_at is not None
    assert (waiting.run_at - waiting.attempts[0].finished_at).total_seconds() >= 499.9


def test_the_policy_is_that_of_the_enqueue_even_if_the_code_changes() -> None:
    """AC-46: attempt number, limit and backoff are kept with the job."""
    flaky, _ = failing(99, max_retries=2, backoff=Fixed(1000))
    handle = flaky.enqueue()
    flaky.backoff, flaky.max_retries = Fixed(0), 0

    drain()

    waiting = handle.refresh()
    assert (waiting.state, waiting.max_retries) == (JobState.RETRY_WAIT, 2)


def test_a_resubmitted_job_has_all_its_retries_again() -> None:
    """AC-53."""
    flaky, attempts = failing(99, max_retries=1)
    handle = flaky.enqueue()
    drain(skip_waits=True)
    resubmit(handle.id)
    drain(skip_waits=True)

    assert attempts == [1, 2, 1, 2]
    assert len(handle.refresh().attempts) == 4


def test_a_key_is_taken_through_all_retries_and_free_after_the_end() -> None:
    """AC-61 and AC-59."""
    flaky, _ = failing(1, backoff=Fixed(1000))
    unique = flaky.using(unique_key="k", on_duplicate="raise")
    first = unique.enqueue()
    drain()
    assert first.refresh().state == JobState.RETRY_WAIT

    with pytest.raises(DuplicateJob) as caught:
        unique.enqueue()
    assert caught.value.job_id == first.id

    drain(skip_waits=True)
    assert unique.enqueue().existing is False


def test_a_key_until_started_is_free_while_the_job_runs() -> None:
    made: list[bool] = []

    @job("serial.job")
    def serial() -> None:
        if not made:
            made.append(serial.using(unique_key="k", unique_until="started").enqueue().existing)

    serial.using(unique_key="k", unique_until="started").enqueue()
    drain()

    assert made == [False]


def test_a_window_holds_whatever_becomes_of_the_job() -> None:
    """AC-58."""
    flaky, _ = failing(0)
    unique = flaky.using(unique_key="k", unique_until=1.0)
    first = unique.enqueue()
    drain()

    assert unique.enqueue().id == first.id
    threading.Event().wait(1.05)
    assert unique.enqueue().existing is False


def test_a_paused_pool_keeps_its_retries_too() -> None:
    flaky, attempts = failing(1)
    flaky.enqueue()
    drain()
    pools.pause("default")

    drain(skip_waits=True)

    assert attempts == [1]


def test_a_disabled_type_waits(engine: Engine) -> None:
    flaky, attempts = failing(0)
    handle = flaky.enqueue()
    engine.types.set("flaky.job", {"enabled": False})

    drain()

    assert (attempts, handle.refresh().state) == ([], JobState.READY)


def test_what_a_type_redacts_is_masked_for_people() -> None:
    @job("secret.job", redact=["token"])
    def secret(user: str, token: str) -> None: ...

    stored = get_job(secret.enqueue(user="ann", token="t0p").id)

    assert shown_payload(stored) == {"user": "ann", "token": "•••"}
    assert stored.payload == {"user": "ann", "token": "t0p"}
