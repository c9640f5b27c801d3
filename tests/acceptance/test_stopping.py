"""Handlers that must stop, over time or cancelled: what it takes to stop them, and what it costs their neighbours."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from jobs.api import cancel, get_job
from jobs.core.job import Job
from jobs.core.states import JobState
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Host, Journal, StartHost, is_alive
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually, soon

pytestmark = pytest.mark.acceptance


@pytest.fixture
def host(start_host: StartHost) -> Host:
    """With little patience."""
    return start_host("--concurrency", "6", DJANGO_SETTINGS_MODULE="tests.acceptance.hasty").consuming()


def ended(job: Any, within: float = 60.0) -> Job:
    def found() -> Job | None:
        seen = get_job(job.id)
        return seen if seen.finished_at is not None else None

    return eventually(found, within=within)


def error_of(job: Job) -> dict[str, Any]:
    assert job.error is not None
    return job.error


def test_a_handler_over_time_gets_an_exception_and_its_worker_goes_on(host: Host, journal: Journal) -> None:
    (worker,) = host.workers
    spinning = handlers.spin.using(timeout=0.3).enqueue(path=journal.path)
    awaiting = handlers.asleep.using(timeout=0.3, max_retries=0).enqueue(seconds=60, path=journal.path)
    tidying = handlers.tidy_up.using(timeout=0.3).enqueue(path=journal.path)
    retried = handlers.spin.using(timeout=0.3, max_retries=1, backoff=handlers.Fixed(0)).enqueue(path=journal.path)

    job = ended(spinning)
    assert (job.state, job.attempts[0].outcome, job.crashes) == (JobState.DEAD, "failed", 0)
    assert error_of(job)["type"] == "JobTimeout"
    assert error_of(job)["message"] == f"Job {job.id} ran longer than its time-out of 0.3 s."
    assert "in spin" in error_of(job)["traceback"]
    assert error_of(ended(awaiting))["type"] == "JobTimeout"
    assert journal.count("interrupted", awaiting.id) == 1
    assert "time-out of 0.3 s" in ended(tidying).result  # it caught the exception and answered
    assert [attempt.outcome for attempt in ended(retried).attempts] == ["failed", "failed"]
    assert host.workers == [worker]


def test_a_handler_that_does_not_stop_is_ended_with_its_worker_and_charged_alone(host: Host, journal: Journal) -> None:
    (worker,) = host.workers
    neighbour = handlers.heed.enqueue(path=journal.path, seconds=3.0)
    eventually(lambda: journal.count("began", neighbour.id))
    stubborn = [
        handlers.sleep.using(timeout=0.3, max_retries=0).enqueue(seconds=60, path=journal.path),
        handlers.swallow.using(timeout=0.3).enqueue(path=journal.path),
        handlers.aswallow.using(timeout=0.3).enqueue(path=journal.path),
    ]

    for job in map(ended, stubborn):
        assert (job.state, job.crashes) == (JobState.DEAD, 0)
        assert error_of(job)["type"] == "JobTimeout"
        assert "could not be interrupted: its worker was ended" in error_of(job)["message"]
        assert [attempt.outcome for attempt in job.attempts] == ["failed"]
    assert not is_alive(worker)
    again = ended(neighbour)
    assert (again.state, again.attempt, again.crashes) == (JobState.SUCCEEDED, 1, 0)
    assert journal.count("began", neighbour.id) >= 2  # a busy machine ends the stubborn ones in turns


def test_a_handler_that_holds_the_interpreter_is_ended_too(host: Host, journal: Journal) -> None:
    job = ended(handlers.hold_the_lock.using(timeout=0.3, max_retries=0).enqueue(seconds=30, path=journal.path))
    assert "its worker was ended" in error_of(job)["message"]
    assert host.process.poll() is None


def test_endless_loops_do_not_exhaust_a_worker(host: Host, journal: Journal) -> None:
    (worker,) = host.workers
    endless = handlers.spin.using(timeout=0.2).enqueue_many([{"path": journal.path}] * 24)
    last = handlers.note.using(priority=-1).enqueue(path=journal.path)

    assert ended(last).state == JobState.SUCCEEDED
    assert {ended(job).state for job in endless} == {JobState.DEAD}
    assert journal.pid_of("ran", last.id) == worker


def seconds_until_heard(job: Any, word: str, journal: Journal) -> float:
    """From the cancel of a running job to the word that its handler writes down."""
    cancel(job.id)
    asked_at = time.monotonic()
    eventually(lambda: journal.count(word, job.id))
    return time.monotonic() - asked_at


def test_each_kind_of_handler_hears_of_its_cancelling_within_half_a_second(
    start_host: StartHost, journal: Journal
) -> None:
    """From the news alone: no renewal comes in between."""
    start_host("--lease", "600", DJANGO_SETTINGS_MODULE="tests.acceptance.seldom").consuming()
    kinds = {"heeded": handlers.heed, "interrupted": handlers.asleep.using(timeout=None)}
    for word, kind in kinds.items():
        delays: list[float] = []
        for _ in range(4):
            job = kind.enqueue(path=journal.path, seconds=60)
            eventually(lambda job=job: journal.count("began", job.id))
            delays.append(seconds_until_heard(job, word, journal))
            assert ended(job).state == JobState.CANCELLED
        *most, longest = sorted(delays)
        assert most[-1] < soon(0.5), (word, delays)
        assert longest < soon(1.5), (word, delays)  # a busy machine may hold one of them up

    suspect = handlers.heed.enqueue(path=journal.path, seconds=60)
    eventually(lambda: journal.count("began", suspect.id))
    os.kill(journal.pid_of("began", suspect.id), signal.SIGKILL)
    eventually(lambda: journal.count("began", suspect.id) == 2)  # now in a process of its own
    assert seconds_until_heard(suspect, "heeded", journal) < soon(1.5)
    assert ended(suspect).state == JobState.CANCELLED


def test_a_cancel_arrives_though_no_host_hears_of_it(
    private_valkey: ValkeyServer, start_host: StartHost, journal: Journal, settings: Any
) -> None:
    """The server refuses to tell any news: what is left is the state of the job, which each renewal meets."""
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    private_valkey.client().execute_command("ACL", "SETUSER", "default", "-xread")
    host = start_host(SCHEDULER_REDIS_URL=private_valkey.url).consuming()
    sync, waiting = handlers.heed.enqueue(path=journal.path), handlers.note.using(delay=60).enqueue(path=journal.path)
    awaiting = handlers.asleep.using(timeout=None).enqueue(path=journal.path, seconds=60)
    eventually(lambda: journal.count("began") == 2)

    for job in (sync, awaiting, waiting):
        cancel(job.id)

    eventually(lambda: journal.count("heeded", sync.id) and journal.count("interrupted", awaiting.id), within=soon(3))
    assert {ended(job).state for job in (sync, awaiting, waiting)} == {JobState.CANCELLED}
    assert "xread" in host.log.lower(), "it has tried to listen"


def test_a_cancelled_handler_that_does_not_ask_is_stopped_all_the_same(host: Host, journal: Journal) -> None:
    (worker,) = host.workers
    spinning = handlers.spin.using(timeout=None).enqueue(path=journal.path)
    eventually(lambda: journal.count("began", spinning.id))

    cancel(spinning.id)

    job = ended(spinning)
    assert (job.state, job.attempt, job.crashes) == (JobState.CANCELLED, 1, 0)
    assert journal.count("interrupted", job.id) == 1
    assert host.workers == [worker]

    asleep = handlers.sleep.using(timeout=None).enqueue(seconds=60, path=journal.path)
    neighbour = handlers.heed.enqueue(path=journal.path, seconds=2.0)
    eventually(lambda: journal.count("began") == 3)

    cancel(asleep.id)

    job = ended(asleep)
    assert (job.state, job.attempt, job.crashes) == (JobState.CANCELLED, 1, 0)
    assert not is_alive(worker)
    assert ended(neighbour).attempt == 1
    assert journal.count("began", job.id) == 1
