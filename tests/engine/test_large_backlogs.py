"""Many jobs at once: no script keeps the others waiting, and a waiting job is small.

A script's time is the processor time that the server spent on it: by the wall clock (SLOWLOG) a busy machine would be
taken for a slow script. It is generous to the script only in that a full processor slows it down a little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.core.job import JobSpec
from jobs.engine import Completion, Engine, Failure
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.steps import Steps
from tests.support.valkey import ValkeyServer

MANY = 20_000
LIMIT_MS = 50


class Watched(Steps):
    """Notes how long the server's processor was busy with each call of a script."""

    def __init__(self, engine: Engine, server: ValkeyServer) -> None:
        super().__init__(engine)
        assert server.process is not None
        self.clock_id = (~server.process.pid << 3) | 2  # the kernel's id of the clock of that process
        self.took_ms: dict[str, float] = {}

    def busy_ms(self) -> float:
        return time.clock_gettime(self.clock_id) * 1_000

    def slow(self) -> dict[str, float]:
        """Script → milliseconds of its longest call, of those that took too long."""
        return {name: took for name, took in self.took_ms.items() if took > LIMIT_MS}


@pytest.fixture
def steps(
    private_valkey: ValkeyServer, namespace: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    """An engine on a server of its own, whose every script is timed."""
    store = Store(private_valkey.url, namespace)
    store.client.config_set("appendfsync", "no")
    steps = Watched(Engine(store, get_settings(), clock), private_valkey)
    run = store.run

    def run_timed(_: Store, name: str, /, *arguments: Any, **named: Any) -> Any:
        began = steps.busy_ms()
        reply = run(name, *arguments, **named)
        steps.took_ms[name] = max(steps.took_ms.get(name, 0.0), steps.busy_ms() - began)
        return reply

    monkeypatch.setattr(Store, "run", run_timed)
    yield steps
    store.close()


def enqueue(steps: Watched, **spec: Any) -> None:
    payload = b'{"x":"%s"}' % (b"a" * 92)
    assert len(payload) == 100
    steps.engine.jobs.enqueue(JobSpec(type="t", **spec), [payload] * MANY)


def drain(steps: Watched) -> int:
    """Leases and completes by the thousand until nothing is left; how many were completed."""
    done = 0
    while True:
        reply = steps.ask(1_000)
        completions = [Completion(job.id, job.token, job.type, steps.now_ms()) for job in reply.jobs]
        done += steps.engine.leases.complete(steps.route, completions).count("ok")
        if not reply.jobs and reply.next_due is None:
            return done


def test_twenty_thousand_jobs_due_in_one_millisecond_all_run(steps: Watched, clock: ManualClock) -> None:
    enqueue(steps, delay_ms=5_000)
    clock.advance(5)

    assert drain(steps) == MANY

    assert steps.slow() == {}


def test_they_are_promoted_as_well_where_nobody_leases(steps: Watched, clock: ManualClock) -> None:
    enqueue(steps, delay_ms=5_000)
    clock.advance(5)

    promoted = 0
    while (reply := steps.engine.leases.promote(steps.route)).promoted:
        promoted += reply.promoted

    assert promoted == MANY
    assert steps.slow() == {}


@pytest.mark.parametrize("started", [False, True])
def test_twenty_thousand_leases_that_ran_out_are_all_taken_back(
    steps: Watched, clock: ManualClock, started: bool
) -> None:
    enqueue(steps)
    while jobs := steps.ask(1_000).jobs:
        if started:
            steps.engine.leases.start(steps.route, [(job.id, job.token, steps.now_ms()) for job in jobs])
    clock.advance(60)

    taken = 0
    while (reply := steps.engine.leases.recover(steps.route)).released + reply.recovered:
        taken += reply.released + reply.recovered

    assert taken == MANY
    assert steps.slow() == {}
    assert steps.ask(1).ready_left == MANY - 1


@pytest.mark.parametrize("end", ["retry", "dead", "release", "crash", "park", "renew"])
def test_the_largest_call_of_a_worker_is_short(steps: Watched, end: str) -> None:
    steps.engine.jobs.enqueue(JobSpec(type="t"), [b"{}"] * 3_000)
    error = b'{"type":"E","message":"m","traceback":"%s"}' % (b"x" * 1_000)

    while jobs := steps.ask(1_000).jobs:
        leases = [(job.id, job.token) for job in jobs]
        if end == "release":
            steps.engine.leases.release(steps.route, leases, charged=True)
            break
        if end == "renew":
            steps.engine.leases.renew(steps.route, leases, 10_000)
        elif end == "crash":
            steps.engine.leases.crash(steps.route, [(*lease, 1) for lease in leases], reason="gone")
            break
        elif end == "park":
            steps.engine.leases.park(steps.route, [(*lease, "t") for lease in leases])
        else:
            failures = [
                Failure(job.id, job.token, "t", 1, "dead" if end == "dead" else "retry", 60_000, 0, error)
                for job in jobs
            ]
            steps.engine.leases.fail(steps.route, failures)

    assert steps.slow() == {}


def test_large_payloads_do_not_make_long_scripts(steps: Watched) -> None:
    payload = b'{"x":"%s"}' % (b"a" * 262_000)
    ids = [job.id for job in steps.engine.jobs.enqueue(JobSpec(type="t"), [payload] * 120)]

    jobs = []
    while reply := steps.ask(1_000).jobs:
        jobs += reply
        steps.engine.leases.complete(steps.route, [Completion(job.id, job.token, "t", 1, payload) for job in reply])

    assert [job.id for job in jobs] == ids
    assert len(steps.engine.jobs.page(limit=120).items) == 120
    assert steps.slow() == {}


def test_forgetting_many_jobs_is_done_in_short_calls(steps: Watched, clock: ManualClock) -> None:
    enqueue(steps)
    assert drain(steps) == MANY
    clock.advance(get_settings().retention_seconds + 1)

    assert steps.engine.upkeep.prune_partition(steps.route) >= MANY

    assert steps.slow() == {}
    assert steps.engine.jobs.page().items == []


@pytest.mark.parametrize("delay_ms", [0, 5_000])
def test_a_waiting_job_of_a_hundred_bytes_takes_at_most_four_hundred(steps: Watched, delay_ms: int) -> None:
    steps.enqueue()
    client: Any = steps.engine.store.client
    before = client.info("memory")["used_memory"]

    enqueue(steps, delay_ms=delay_ms)

    each = (client.info("memory")["used_memory"] - before) / MANY
    assert each <= 400


def test_looking_costs_the_same_whatever_the_backlog(steps: Watched) -> None:
    client: Any = steps.engine.store.client

    def commands_of_a_look() -> int:
        before = client.info("stats")["total_commands_processed"]
        steps.engine.stats.snapshot()
        steps.engine.jobs.page(limit=20)
        return int(client.info("stats")["total_commands_processed"] - before)

    steps.engine.jobs.enqueue(JobSpec(type="t"), [b"{}"] * 100)
    few = commands_of_a_look()
    enqueue(steps)

    assert commands_of_a_look() <= few + 2
    assert steps.slow() == {}
