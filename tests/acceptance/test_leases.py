"""Who may work on a job: leases outlive a stuck interpreter and do not outlive a stopped process."""

from __future__ import annotations

import os
import signal
import time

import pytest

from jobs.api import cancel, get_job
from jobs.core.states import JobState
from jobs.engine import get_engine
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Journal, StartHost
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance


def test_a_job_that_holds_the_interpreter_for_three_leases_runs_once(start_host: StartHost, journal: Journal) -> None:
    job = handlers.hold_the_lock.enqueue(seconds=3.2, path=journal.path)
    start_host("--lease", "1", "--burst")
    start_host("--lease", "1").consuming()  # somebody who would take it

    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)

    assert ended.attempt == 1
    assert journal.counts("began") == {job.id: 1}


def test_a_host_that_was_stopped_for_three_leases_changes_nothing_and_goes_on_serving(
    start_host: StartHost, journal: Journal
) -> None:
    hosts = [start_host("--lease", "1").consuming(), start_host("--lease", "1").consuming()]
    job = handlers.sleep.using(timeout=None).enqueue(seconds=1.5, path=journal.path)
    eventually(lambda: get_job(job.id).started_at)
    pid = journal.pid_of("began", job.id)
    frozen, other = sorted(hosts, key=lambda host: pid not in host.workers)

    frozen.signal_all(signal.SIGSTOP)
    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)
    assert journal.pid_of("ended", job.id) != pid
    frozen.signal_all(signal.SIGCONT)
    eventually(lambda: journal.count("ended", job.id) == 2)  # its handler finishes; nobody listens
    time.sleep(0.5)

    assert get_job(job.id) == ended
    other.signal(signal.SIGTERM)
    other.wait()
    later = handlers.note.enqueue(path=journal.path)
    eventually(lambda: get_job(later.id).state == JobState.SUCCEEDED)


def test_a_stopped_child_loses_its_job_although_its_supervisor_lives(start_host: StartHost, journal: Journal) -> None:
    host = start_host("--lease", "1", "--processes", "2").consuming()
    job = handlers.heed.enqueue(path=journal.path, seconds=3.0)  # longer than a busy machine takes to stop it
    eventually(lambda: journal.count("began", job.id) and get_job(job.id).started_at)
    pid = journal.pid_of("began", job.id)

    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: journal.count("began", job.id) == 2)
    os.kill(pid, signal.SIGCONT)

    eventually(lambda: journal.count("heeded", job.id) == 1)  # told that the lease is gone, it stops
    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)
    assert ended.attempt == 2
    assert pid in host.workers


def test_a_long_job_keeps_its_lease(start_host: StartHost, journal: Journal) -> None:
    start_host("--lease", "1.5").consuming()  # shorter, and a busy machine loses it by itself
    jobs = [handlers.asleep.using(timeout=None).enqueue(seconds=4.0, path=journal.path) for _ in range(5)]
    for job in jobs:
        eventually(lambda job=job: get_job(job.id).state == JobState.SUCCEEDED)
    assert set(journal.counts("began").values()) == {1}


def test_a_cancelled_handler_is_asked_to_stop_and_an_async_one_is_interrupted(
    start_host: StartHost, journal: Journal
) -> None:
    start_host("--lease", "1").consuming()
    polite = handlers.heed.enqueue(path=journal.path)
    awaiting = handlers.asleep.using(timeout=None).enqueue(seconds=20, path=journal.path)
    eventually(lambda: journal.count("began") == 2)

    cancel(polite.id)
    cancel(awaiting.id)

    for job in (polite, awaiting):
        eventually(lambda job=job: get_job(job.id).state == JobState.CANCELLED)
    assert journal.count("heeded", polite.id) == 1
    assert journal.count("interrupted", awaiting.id) == 1


def test_a_handler_that_ignores_its_cancelling_ends_as_cancelled_all_the_same(
    start_host: StartHost, journal: Journal
) -> None:
    start_host("--lease", "1").consuming()
    deaf = handlers.sleep.enqueue(seconds=1.0, path=journal.path)
    eventually(lambda: journal.count("began"))

    cancel(deaf.id)

    ended = eventually(lambda: (found := get_job(deaf.id)).state == JobState.CANCELLED and found)
    assert journal.count("ended", deaf.id) == 1
    assert ended.result is None


def test_a_stopped_child_keeps_its_supervisor_from_nothing(start_host: StartHost) -> None:
    """Whatever the others are told meanwhile: hundreds of words fill its link."""
    host = start_host("--processes", "2").consuming()
    frozen, _ = eventually(lambda: len(found := host.workers) == 2 and found)
    os.kill(frozen, signal.SIGSTOP)
    news = get_engine().news

    for number in range(600):
        news.tell("pauses", str(number))
        time.sleep(0.005)  # each a word of its own

    host.signal(signal.SIGTERM)
    eventually(lambda: "stopping" in host.log)
