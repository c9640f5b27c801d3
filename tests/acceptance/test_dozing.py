"""A worker that had nothing to do looks up only once a second: what comes then is looked after as at any other time."""

from __future__ import annotations

import os
import signal
import time

import pytest

from jobs.api import cancel, get_job
from jobs.core.states import JobState
from jobs.worker.child import DOZE_SECONDS
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Host, Journal, StartHost
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance


def dozing(host: Host) -> Host:
    host.consuming()
    time.sleep(2.5 * DOZE_SECONDS)
    return host


def test_a_job_is_stopped_when_its_time_is_over_and_the_next_when_it_is_cancelled(
    start_host: StartHost, journal: Journal
) -> None:
    host = dozing(start_host("--concurrency", "2"))
    late = handlers.asleep.using(timeout=0.3, max_retries=0).enqueue(seconds=20.0, path=journal.path)
    ended = eventually(lambda: (found := get_job(late.id)).state == JobState.DEAD and found)
    assert ended.error is not None
    assert ended.error["type"] == "JobTimeout"
    assert journal.count("interrupted", late.id) == 1

    unwanted = handlers.asleep.using(timeout=None).enqueue(seconds=20.0, path=journal.path)
    dozing(host)
    eventually(lambda: get_job(unwanted.id).started_at)
    cancel(unwanted.id)
    eventually(lambda: get_job(unwanted.id).state == JobState.CANCELLED)
    assert journal.count("interrupted", unwanted.id) == 1


def test_a_job_that_kills_its_worker_is_charged_and_runs_again(start_host: StartHost, journal: Journal) -> None:
    host = dozing(start_host("--concurrency", "2"))
    job = handlers.sleep.using(timeout=None).enqueue(seconds=1.0, path=journal.path)
    eventually(lambda: journal.count("began", job.id))
    os.kill(host.workers[0], signal.SIGKILL)

    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)
    assert (ended.attempt, ended.crashes) == (2, 1)


def test_a_job_that_comes_while_the_supervisor_is_frozen_is_given_up_when_its_lease_is_over(
    start_host: StartHost, journal: Journal
) -> None:
    host = dozing(start_host("--lease", "2", "--pool", "default"))
    os.kill(host.pid, signal.SIGSTOP)
    job = handlers.heed.enqueue(path=journal.path, seconds=8.0)
    eventually(lambda: journal.count("began", job.id))

    other = start_host("--lease", "2", "--pool", "default").consuming()
    eventually(lambda: journal.count("heeded", job.id))
    os.kill(host.pid, signal.SIGCONT)

    eventually(lambda: get_job(job.id).state == JobState.SUCCEEDED)
    assert (journal.count("began", job.id), journal.count("ended", job.id)) == (2, 1)
    assert journal.pid_of("ended", job.id) in (*host.workers, *other.workers)


def test_each_of_some_jobs_that_come_one_by_one_is_run_once(start_host: StartHost, journal: Journal) -> None:
    dozing(start_host("--concurrency", "1"))
    jobs = []
    for _ in range(4):
        jobs.append(handlers.note.enqueue(path=journal.path))
        time.sleep(1.1 * DOZE_SECONDS)

    assert [get_job(job.id).state for job in jobs] == [JobState.SUCCEEDED] * 4
    assert journal.counts("ran") == {job.id: 1 for job in jobs}
    assert all(get_job(job.id).attempts[0].started_at for job in jobs)


def test_a_worker_that_is_to_end_or_to_be_replaced_does_so_at_once(start_host: StartHost) -> None:
    host = dozing(start_host("--max-jobs", "1"))
    (before,) = host.workers
    handlers.nothing.enqueue()
    eventually(lambda: host.workers and before not in host.workers)

    dozing(host).signal(signal.SIGTERM)
    assert host.wait(10) == 0
