"""Waiting workers: one enqueue wakes one of them, and nobody has to ask again and again."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from jobs.conf import get_settings
from jobs.core.job import Route
from jobs.engine import Engine
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually, soon


def drain(steps: Steps) -> None:
    """Takes the wake tokens that are there."""
    while steps.engine.leases.wait_for_work([steps.route], 0.01):
        pass


def test_a_wait_for_nothing_ends_at_its_time(steps: Steps) -> None:
    began = time.monotonic()

    assert steps.engine.leases.wait_for_work([steps.route], 0.2) is None

    assert 0.15 < time.monotonic() - began < soon(3)


def test_an_enqueue_wakes_a_waiting_worker_and_says_where(engine: Engine, steps: Steps) -> None:
    other = Steps(engine, "other")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(engine.leases.wait_for_work, [steps.route, other.route], 10)
        eventually(lambda: any("blpop" in str(client) for client in engine.store.client.client_list()))

        other.enqueue()

        assert waiting.result(10) == other.route


def test_a_lease_that_is_sent_with_a_wait_brings_the_job_that_ends_it(engine: Engine, steps: Steps) -> None:
    with ThreadPoolExecutor(1) as threads:
        call = partial(
            engine.leases.wait_and_lease, steps.route, 20, worker="w", token="token", limit=2, lease_ms=LEASE_MS
        )
        waiting = threads.submit(call)
        eventually(lambda: any("blpop" in str(client) for client in engine.store.client.client_list()))

        job_id = steps.enqueue()

        assert [job.id for job in waiting.result(20).jobs] == [job_id]
        assert [job.id for job in engine.leases.recall(steps.route, worker="w", token="token").jobs] == [job_id]


def test_one_enqueue_wakes_one_of_many(private_valkey: ValkeyServer, namespace: str, clock: ManualClock) -> None:
    """On a server of its own: who is blocked there is counted."""
    engine = Engine(Store(private_valkey.url, namespace), get_settings(), clock)
    steps = Steps(engine)
    woken: list[Route | None] = []

    def wait() -> None:
        woken.append(engine.leases.wait_for_work([steps.route], 60.0))

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()

    def stand(waiting: int) -> bool:
        blocked = [client for client in engine.store.client.client_list() if "b" in client["flags"]]
        return (len(blocked), len(woken)) == (waiting, 5 - waiting)

    for waiting in (5, 4, 3, 2, 1):
        eventually(partial(stand, waiting))
        steps.enqueue()

    for thread in threads:
        thread.join(10)
    engine.store.close()
    assert woken == [steps.route] * 5


def test_whoever_leaves_jobs_behind_wakes_the_next(steps: Steps) -> None:
    steps.enqueue_many(3)
    drain(steps)

    steps.ask(1)
    assert steps.engine.leases.wait_for_work([steps.route], 1) == steps.route

    steps.ask(5)
    assert steps.engine.leases.wait_for_work([steps.route], 0.05) is None


@pytest.mark.parametrize(
    "event", ["earlier due", "retry", "release", "crash", "unpark", "resume", "promote", "run now", "resubmit"]
)
def test_whatever_makes_work_wakes_a_worker(steps: Steps, clock: ManualClock, event: str) -> None:
    engine = steps.engine
    steps.enqueue(delay_ms=60_000)
    steps.enqueue()
    job = steps.lease()
    if event == "unpark":
        steps.park(job)
    elif event == "resubmit":
        steps.fail(job, "dead")
    drain(steps)

    if event == "earlier due":
        steps.enqueue(delay_ms=50_000)
    elif event == "retry":
        steps.fail(job, "retry", delay_ms=1)
    elif event == "release":
        steps.release(job)
    elif event == "crash":
        steps.crash(job)
    elif event == "unpark":
        engine.leases.unpark(steps.route, {"t"})
    elif event == "resume":
        engine.pools.pause("default", by="me")
        engine.pools.resume("default")
    elif event == "promote":
        clock.advance(60)
        engine.leases.promote(steps.route)
    elif event == "run now":
        engine.jobs.run_now(engine.jobs.page().items[-1].id)
    else:
        engine.jobs.resubmit(job.id)

    assert engine.leases.wait_for_work([steps.route], 1) == steps.route


def test_however_much_happens_there_is_one_token(steps: Steps) -> None:
    for _ in range(3):
        steps.enqueue_many(5)
        steps.engine.pools.resume("default")

    assert steps.engine.leases.wait_for_work([steps.route], 0.05) == steps.route
    assert steps.engine.leases.wait_for_work([steps.route], 0.05) is None
