"""Processes die: what becomes of their jobs, and of the host."""

from __future__ import annotations

import os
import signal
import time

import pytest

from jobs.api import get_job
from jobs.core.states import JobState
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Journal, StartHost, children_of, is_alive
from tests.support.wait import eventually, soon

pytestmark = pytest.mark.acceptance


def test_a_killed_worker_is_replaced_within_a_second_and_its_job_is_charged_and_runs_again(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host("--concurrency", "2").consuming()
    job = handlers.sleep.using(timeout=None).enqueue(seconds=1.0, path=journal.path)
    eventually(lambda: journal.count("began", job.id))
    (worker,) = host.workers

    os.kill(worker, signal.SIGKILL)
    killed_at = time.monotonic()
    eventually(lambda: [pid for pid in host.workers if pid != worker and is_alive(pid)])
    assert time.monotonic() - killed_at < soon(1.0)

    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)
    assert (ended.attempt, ended.crashes) == (2, 1)
    crash = ended.attempts[0]
    assert crash.outcome == "crashed"
    assert crash.error is not None
    assert "SIGKILL (9)" in crash.error["message"]


def test_jobs_that_had_not_started_are_not_charged_for_the_death_of_their_worker(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host("--concurrency", "1").consuming()
    for _ in range(30):  # short ones first: the worker learns to hold some ready
        handlers.nothing.enqueue()
    blocker = handlers.sleep.using(timeout=None).enqueue(seconds=1.0, path=journal.path)
    behind = [handlers.note.enqueue(path=journal.path) for _ in range(20)]
    eventually(lambda: journal.count("began", blocker.id))

    os.kill(host.workers[0], signal.SIGKILL)

    for job in behind:
        ended = eventually(lambda job=job: (f := get_job(job.id)).state == JobState.SUCCEEDED and f)
        assert (ended.attempt, ended.crashes) == (1, 0)
    assert journal.counts("ran").keys() == {job.id for job in behind}


def test_a_job_that_kills_its_worker_is_buried_with_the_signal_named_and_its_neighbours_finish(
    start_host: StartHost, journal: Journal
) -> None:
    poison = handlers.die.using(priority=50).enqueue(path=journal.path, by=signal.SIGSEGV)
    neighbours = [handlers.sleep.enqueue(seconds=0.3, path=journal.path) for _ in range(12)]
    many = handlers.note.enqueue_many([{"path": journal.path}] * 300)

    assert start_host("--concurrency", "8", "--burst").wait() == 0

    buried = get_job(poison.id)
    assert (buried.state, buried.crashes) == (JobState.DEAD, 3)
    assert buried.error is not None
    assert "SIGSEGV (11)" in buried.error["message"]
    assert {get_job(job.id).state for job in neighbours} == {JobState.SUCCEEDED}
    assert {get_job(job.id).state for job in many} == {JobState.SUCCEEDED}
    assert max(get_job(job.id).crashes for job in neighbours) <= 1


def test_a_handler_that_ends_the_process_quietly_is_a_crash_too(start_host: StartHost) -> None:
    job = handlers.quit_process.enqueue(code=0)

    assert start_host("--burst").wait() == 0

    buried = get_job(job.id)
    assert (buried.state, buried.crashes) == (JobState.DEAD, 1)
    assert buried.error is not None
    assert "exited with code 0" in buried.error["message"]


def test_when_the_whole_host_is_killed_another_runs_its_job_after_the_lease(
    start_host: StartHost, journal: Journal
) -> None:
    hosts = [start_host("--lease", "1").consuming(), start_host("--lease", "1").consuming()]
    job = handlers.sleep.using(timeout=None).enqueue(seconds=1.0, path=journal.path)
    eventually(lambda: get_job(job.id).started_at)
    doomed = next(host for host in hosts if journal.pid_of("began", job.id) in host.workers)
    pids = doomed.tree

    os.kill(doomed.pid, signal.SIGKILL)

    eventually(lambda: not any(map(is_alive, pids[1:])))
    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found, within=soon(1 + 5 + 2))
    assert (ended.attempt, ended.crashes) == (2, 1)
    assert journal.lines()[-1][2] not in pids


def test_a_fork_that_comes_back_out_of_its_handler_ends_as_python_would_and_runs_nothing_else(
    start_host: StartHost,
) -> None:
    host = start_host().consuming()
    ends = {"returns": 0, "fails": 1, "exits": 3}
    for forking in (handlers.fork, handlers.afork):
        jobs = {how: forking.enqueue(how=how) for how in ends}
        ended = {how: eventually(lambda job=job: (f := get_job(job.id)).is_terminal and f) for how, job in jobs.items()}
        assert {how: job.result for how, job in ended.items()} == ends
        assert {(job.attempt, job.crashes) for job in ended.values()} == {(1, 0)}

    (worker,) = host.workers
    assert children_of(worker) == []
    assert "ValueError: of the fork" in host.log


@pytest.mark.parametrize("victim", ["supervisor", "nursery"])
def test_no_process_outlives_the_death_of_any_one(start_host: StartHost, victim: str) -> None:
    host = start_host("--processes", "2").consuming()
    pids = host.tree

    os.kill(host.pid if victim == "supervisor" else host.nursery, signal.SIGKILL)

    eventually(lambda: not any(map(is_alive, pids[1:])))
    assert host.wait() != 0


def test_dead_children_are_reaped(start_host: StartHost) -> None:
    host = start_host().consuming()
    for _ in range(3):
        (worker,) = eventually(lambda: host.workers)
        os.kill(worker, signal.SIGKILL)
        eventually(lambda worker=worker: worker not in host.workers)
    eventually(lambda: len(host.workers) == 1)
