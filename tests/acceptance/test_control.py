"""What people change is in force on every host within a moment, under load, in real processes."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobs import enqueue_many, get_job, pools, scheduler, types, workers
from jobs.core.pause import EVERYTHING, Scope
from jobs.engine import get_engine
from jobs.runtime.process import is_stopped
from tests.acceptance.hosts import Host, Journal, Manage, StartHost
from tests.support.wait import eventually, soon

pytestmark = pytest.mark.acceptance

WITHIN = 2.0
"""Seconds in which every host must follow."""

ROUNDS = 20

JOB_SECONDS = 0.4
"""As long the jobs take whose number is counted."""


@pytest.fixture
def hosts(start_host: StartHost) -> list[Host]:
    """Three of them, each with one worker of four slots, consuming."""
    started = [start_host("--pool", "default", "--concurrency", "4") for _ in range(3)]
    return [host.consuming() for host in started]


def fill(journal: Journal, count: int, seconds: float, type: str = "test.sleep") -> list[str]:
    payload = {"seconds": seconds, "path": journal.path}
    return [made.id for made in enqueue_many(type, [payload] * count, allow_unknown=True)]


def running(journal: Journal) -> int:
    words = [word for word, _, _ in journal.lines()]
    return words.count("began") - words.count("ended")


def follows(journal: Journal, wanted: int) -> None:
    """So many run, soon enough, and for longer than a job takes: on the way elsewhere it may be so by chance."""
    seen: list[int] = []
    try:
        eventually(lambda: seen.append(running(journal)) or seen[-1] == wanted, within=soon(WITHIN))
    except AssertionError:
        raise AssertionError(f"{wanted} should run at a time, but it was {seen}") from None
    stays, until = [], time.monotonic() + 1.5 * JOB_SECONDS
    while time.monotonic() < until:
        stays.append(running(journal))
        time.sleep(0.01)
    assert max(stays) == max(stays[len(stays) // 2 :]) == wanted, f"{wanted} should go on running, but it was {stays}"


def test_running_jobs_follow_the_slots_up_and_down_on_three_hosts(
    hosts: list[Host], journal: Journal, manage: Manage
) -> None:
    fill(journal, 600, JOB_SECONDS)
    follows(journal, 12)

    for slots in (6, 1, 0):
        manage("pools", "scale", "default", str(slots))
        follows(journal, 3 * slots)
    pool = pools.get("default")
    assert (pool.slots, pool.workers) == (0, 3)
    eventually(lambda: pools.get("default").slots_actual == 0)
    assert journal.count("began") == journal.count("ended"), "no running job was stopped"
    manage("pools", "scale", "default", "3")
    follows(journal, 9)


SCOPES: list[tuple[Scope, Callable[[], Any], Callable[[], Any]]] = [
    (EVERYTHING, scheduler.pause, scheduler.resume),
    (Scope("pool", "default"), lambda: pools.pause("default"), lambda: pools.resume("default")),
    (Scope("type", "test.sleep"), lambda: types.pause("test.sleep"), lambda: types.resume("test.sleep")),
]


def test_nothing_starts_from_the_acknowledged_pause_to_the_resume_under_load(
    hosts: list[Host], journal: Journal
) -> None:
    """Short jobs by the thousand, which workers hold ready in heaps."""
    fill(journal, 2_000, 0.004)
    eventually(lambda: journal.count("began") > 50)

    for number in range(ROUNDS):
        scope, pause, resume = SCOPES[number % len(SCOPES)]
        pause()
        begun = journal.count("began")
        fill(journal, 500, 0.004)
        time.sleep(0.1)
        assert journal.count("began") == begun, f"round {number}: jobs started in a paused {scope.words}"
        resume()
        eventually(lambda begun=begun: journal.count("began") > begun)


def freeze_amid_its_jobs(host: Host, journal: Journal, slots: int) -> bool:
    """Stops the host if each of its slots is inside a job: a job that has been let in and has not yet said so would
    say so later, and be taken for one that began then. Whether it was so."""
    host.signal_all(signal.SIGSTOP)
    eventually(lambda: all(is_stopped(pid) for pid in host.tree))
    words = Counter(word for word, _, pid in journal.lines() if pid in host.workers)
    if words["began"] - words["ended"] == slots:
        return True
    host.signal_all(signal.SIGCONT)
    return False


def test_a_pause_is_true_though_a_host_is_frozen_with_jobs_in_its_hands(
    start_host: StartHost, journal: Journal
) -> None:
    frozen, other = (start_host("--pool", "default", "--lease", "2", "--concurrency", "2").consuming() for _ in "ab")
    fill(journal, 2_000, 0.01)
    eventually(lambda: len({pid for word, _, pid in journal.lines() if word == "began"}) == 2)

    eventually(lambda: freeze_amid_its_jobs(frozen, journal, slots=2))
    pools.pause("default")
    begun = journal.count("began")
    frozen.signal_all(signal.SIGCONT)
    time.sleep(1.0)

    assert journal.count("began") == begun
    assert other.process.poll() is None


def test_a_pause_survives_the_restart_of_the_hosts(start_host: StartHost, journal: Journal) -> None:
    first = start_host("--pool", "default").consuming()
    eventually(lambda: pools.list())
    pools.pause("default", reason="a move")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    [job_id] = fill(journal, 1, 0.0)

    second = start_host("--pool", "default")
    eventually(lambda: second.registered is not None and "paused" in second.registered.state)
    assert get_job(job_id).state == "ready"

    pools.resume("default")
    eventually(lambda: get_engine().jobs.get(job_id).state == "succeeded")


def test_a_paused_host_takes_nothing_until_it_is_resumed_or_the_time_is_over(
    start_host: StartHost, journal: Journal
) -> None:
    """The real thing: what it has not begun goes back, what runs ends, and whoever replaces a dead worker waits too."""
    host = start_host("--pool", "default", "--concurrency", "1").consuming()
    told = host.registered
    fill(journal, 50, 0.0)  # short ones first: the worker learns to hold some ready
    eventually(lambda: journal.count("ended") == 50)
    [running_job] = fill(journal, 1, 4.0)
    eventually(lambda: journal.count("began", running_job))
    ids = fill(journal, 20, 0.0)

    workers.pause(told.id, by="ana", reason="disk")

    eventually(lambda: host.registered.state == "not consuming: paused by ana: disk", within=soon(WITHIN))
    eventually(lambda: get_job(running_job).state == "succeeded")
    os.kill(host.workers[0], signal.SIGKILL)
    eventually(lambda: len(found := workers.list()) > 1 and found[-1].state.endswith("paused by ana: disk"))
    assert {(get_job(job_id).state, get_job(job_id).attempt) for job_id in ids} == {("ready", 0)}

    workers.pause(told.id, by="ana", until=timedelta(seconds=0.5))
    eventually(lambda: journal.count("ended") == 71)
    workers.pause(told.id, by="ana")
    eventually(lambda: host.registered.state == "not consuming: paused by ana")
    workers.resume(told.id)
    host.consuming()
