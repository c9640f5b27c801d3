"""The ways in which a host or one of its workers ends on purpose."""

from __future__ import annotations

import os
import signal
import time

import pytest

from jobs.api import get_job
from jobs.core.states import JobState
from jobs.engine import get_engine
from jobs.engine.workers import Command
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Journal, Manage, StartHost, is_alive
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance


def test_sigterm_finishes_what_runs_hands_back_what_has_not_started_and_leaves_no_trace(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host("--concurrency", "1").consuming()
    handlers.nothing.enqueue_many([{}] * 50)  # short ones first: the worker learns to hold some ready
    running = handlers.sleep.enqueue(seconds=4.0, path=journal.path)
    waiting = handlers.note.enqueue_many([{"path": journal.path}] * 20)
    eventually(lambda: journal.count("began", running.id))
    pids = host.tree

    host.signal(signal.SIGTERM)

    assert host.wait() == 0
    assert not any(map(is_alive, pids))
    assert get_job(running.id).state == JobState.SUCCEEDED
    for job in waiting:
        found = get_job(job.id)
        assert (found.state, found.attempt) == (JobState.READY, 0)
    assert get_engine().workers.all() == []
    [ended] = get_engine().workers.ended()
    assert (ended.pid, ended.why, ended.handed_back) == (host.process.pid, "stopped by SIGTERM", 0)


def test_what_still_runs_when_the_grace_is_over_goes_back_charged_and_the_exit_code_says_so(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host("--grace", "0.3").consuming()
    stubborn = handlers.sleep.enqueue(seconds=20, path=journal.path)
    polite = handlers.heed.enqueue(path=journal.path)
    eventually(lambda: journal.count("began") == 2)

    host.signal(signal.SIGTERM)

    assert host.wait() == 1
    for job in (stubborn, polite):
        found = get_job(job.id)
        assert (found.state, found.attempt, found.crashes) == (JobState.READY, 1, 0)
    assert [ended.handed_back for ended in get_engine().workers.ended()] == [2]


def test_a_second_signal_hands_back_at_once(start_host: StartHost, journal: Journal) -> None:
    host = start_host("--grace", "60").consuming()
    job = handlers.sleep.enqueue(seconds=20, path=journal.path)
    eventually(lambda: journal.count("began", job.id))

    host.signal(signal.SIGTERM)
    time.sleep(0.5)
    assert host.process.poll() is None
    host.signal(signal.SIGINT)

    assert host.wait() == 1
    assert get_job(job.id).state == JobState.READY


def test_ctrl_c_reaches_the_whole_group_and_is_a_graceful_end(start_host: StartHost, journal: Journal) -> None:
    host = start_host().consuming()
    job = handlers.sleep.enqueue(seconds=0.7, path=journal.path)
    eventually(lambda: journal.count("began", job.id))

    os.killpg(host.pid, signal.SIGINT)

    assert host.wait() == 0
    assert get_job(job.id).state == JobState.SUCCEEDED


def test_a_terminal_that_closes_is_a_graceful_end_however_often_it_says_so(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host().consuming()
    job = handlers.sleep.enqueue(seconds=1.5, path=journal.path)
    eventually(lambda: journal.count("began", job.id))

    os.killpg(host.pid, signal.SIGHUP)
    eventually(lambda: "stopping" in host.log)
    os.killpg(host.pid, signal.SIGHUP)

    assert host.wait() == 0
    found = get_job(job.id)
    assert (found.state, found.attempt) == (JobState.SUCCEEDED, 1)


def test_nobody_need_read_what_a_worker_has_printed_for_it_to_end(start_host: StartHost, journal: Journal) -> None:
    host = start_host("--max-jobs", "1", reads_output=False, PYTHONUNBUFFERED="").consuming()
    (old,) = host.workers
    handlers.print_and_sleep.enqueue(seconds=0.0, path=journal.path)

    eventually(lambda: host.workers and old not in host.workers)


def test_a_process_that_a_handler_forks_can_be_ended(start_host: StartHost) -> None:
    start_host().consuming()
    job = handlers.terminate.enqueue()
    assert eventually(lambda: (found := get_job(job.id)).is_terminal and found).result == -signal.SIGTERM


def test_a_worker_that_is_sent_sigterm_finishes_its_job_and_is_replaced(
    start_host: StartHost, journal: Journal
) -> None:
    host = start_host().consuming()
    job = handlers.sleep.enqueue(seconds=0.7, path=journal.path)
    eventually(lambda: journal.count("began", job.id))
    (old,) = host.workers

    os.kill(old, signal.SIGTERM)

    eventually(lambda: old not in host.workers and len(host.workers) == 1)
    found = get_job(job.id)
    assert (found.state, found.attempt) == (JobState.SUCCEEDED, 1)


@pytest.mark.parametrize(("command", "why"), [("drain", "drained on demand"), ("stop", "stopped on demand")])
def test_a_host_can_be_told_from_afar_to_end(
    start_host: StartHost, journal: Journal, command: Command, why: str
) -> None:
    host = start_host().consuming()
    job = handlers.sleep.enqueue(seconds=1.0, path=journal.path)
    eventually(lambda: journal.count("began", job.id))

    get_engine().workers.command(host.registered.id, command)

    assert host.wait() == 0
    assert get_job(job.id).state == JobState.SUCCEEDED
    assert [ended.why for ended in get_engine().workers.ended()] == [why]


def test_one_worker_can_be_drained_and_is_not_replaced(start_host: StartHost) -> None:
    host = start_host("--processes", "2").consuming()
    workers = eventually(lambda: len(found := [w for w in get_engine().workers.all() if not w.is_host]) == 2 and found)

    get_engine().workers.command(workers[0].id, "drain")
    eventually(lambda: host.workers == [workers[1].pid])
    get_engine().workers.command(workers[1].id, "drain")

    assert host.wait() == 0
    assert [ended.why for ended in get_engine().workers.ended()] == ["each of its workers was told to end"]


def test_burst_runs_what_is_ready_due_or_comes_back_and_leaves_what_is_for_later(start_host: StartHost) -> None:
    ready = handlers.echo.enqueue_many([{"value": n} for n in range(500)])
    due_soon = handlers.echo.using(delay=0.01).enqueue(value="due")
    later = handlers.echo.using(delay=3600).enqueue(value="later")

    assert start_host("--burst", "--processes", "2").wait() == 0
    assert [ended.why for ended in get_engine().workers.ended()] == ["its pools were empty (--burst)"]

    assert {get_job(job.id).state for job in ready} == {JobState.SUCCEEDED}
    assert get_job(due_soon.id).state == JobState.SUCCEEDED
    assert get_job(later.id).state == JobState.SCHEDULED


def test_burst_serves_the_named_pools_only(start_host: StartHost) -> None:
    mine = handlers.echo.using(pool="mine").enqueue(value=1)
    others = handlers.echo.using(pool="others").enqueue(value=1)

    host = start_host("--burst", "--pool", "mine")

    assert host.wait() == 0
    assert "serves mine with 1 process;" in host.log, "whoever started it sees that it works"
    assert get_job(mine.id).state == JobState.SUCCEEDED
    assert get_job(others.id).state == JobState.READY


@pytest.mark.parametrize("setting", ["scale p 0", "limit p --max-running 0", "pause p"])
def test_burst_waits_for_no_pool_that_may_run_nothing_be_it_empty_or_not(
    start_host: StartHost, manage: Manage, setting: str
) -> None:
    verb, *arguments = setting.split()
    served = handlers.echo.enqueue(value=1)
    done = handlers.echo.using(pool="p").enqueue(value=1)
    assert start_host("--burst").wait() == 0
    manage("pools", verb, *arguments)

    assert start_host("--burst").wait() == 0, "the pool is empty"
    left = handlers.echo.using(pool="p").enqueue(value=2)
    again = handlers.echo.enqueue(value=2)
    assert start_host("--burst").wait() == 0

    assert {get_job(job.id).state for job in (served, done, again)} == {JobState.SUCCEEDED}
    assert get_job(left.id).state == JobState.READY


def test_max_jobs_replaces_the_process_between_jobs_and_charges_nobody(start_host: StartHost, journal: Journal) -> None:
    jobs = handlers.note.enqueue_many([{"path": journal.path}] * 60)

    assert start_host("--burst", "--max-jobs", "20").wait() == 0

    assert journal.counts("ran") == {job.id: 1 for job in jobs}
    assert len({pid for _, _, pid in journal.lines()}) >= 3
    assert {get_job(job.id).attempt for job in jobs} == {1}


def test_max_rss_replaces_a_process_that_has_grown(start_host: StartHost) -> None:
    host = start_host("--max-rss", "180").consuming()
    (small,) = host.workers

    job = handlers.swell.enqueue(megabytes=200)

    eventually(lambda: host.workers and small not in host.workers)
    found = get_job(job.id)
    assert (found.state, found.crashes) == (JobState.SUCCEEDED, 0)


def test_max_in_flight_bounds_what_one_process_holds(start_host: StartHost, journal: Journal) -> None:
    jobs = handlers.sleep.enqueue_many([{"seconds": 0.3, "path": journal.path}] * 8)
    start_host("--burst", "--max-in-flight", "2").wait()

    running = most = 0
    for word, _, _ in journal.lines():
        running += {"began": 1, "ended": -1}[word]
        most = max(most, running)
    assert most == 2
    assert journal.count("ended") == len(jobs)
