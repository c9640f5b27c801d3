from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from jobs.core.job import JobSpec, LeasedJob
from jobs.engine import Engine
from jobs.services.recoverer import BATCH, IDLE_MARGIN_SECONDS, Recoverer
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock

LEASE_SECONDS = 10.0


@pytest.fixture
def recoverer(engine: Engine) -> Recoverer:
    return Recoverer(engine, LEASE_SECONDS)


def test_jobs_whose_lease_ran_out_are_ready_again_and_only_started_ones_are_charged(
    engine: Engine,
    clock: ManualClock,
    recoverer: Recoverer,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue(2)
    started, unstarted = lease(2)
    engine.leases.start(ROUTE, [(started.id, started.token, clock.now_ms())])
    clock.advance(LEASE_SECONDS)

    counts = recoverer.tick()

    assert counts == {"recovered": 1, "released": 1, "buried": 0}
    assert [engine.jobs.get(job.id).crashes for job in (started, unstarted)] == [1, 0]
    assert {engine.jobs.get(job.id).state.value for job in (started, unstarted)} == {"ready"}


def test_a_lease_that_still_has_time_is_left_alone(
    clock: ManualClock,
    recoverer: Recoverer,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue()
    lease()
    clock.advance(LEASE_SECONDS - 0.001)
    assert recoverer.tick() == {"recovered": 0, "released": 0, "buried": 0}


def test_more_orphans_than_fit_one_call_are_all_taken_back_in_one_tick(
    clock: ManualClock,
    recoverer: Recoverer,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue(3 * BATCH + 1)
    lease(3 * BATCH + 1)
    clock.advance(LEASE_SECONDS)
    assert recoverer.tick()["released"] == 3 * BATCH + 1


def test_it_sleeps_until_the_first_lease_can_run_out(
    clock: ManualClock,
    recoverer: Recoverer,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue()
    lease(lease_ms=4000)
    recoverer.tick()
    assert 3.5 < recoverer.every <= 4.1


def test_where_nothing_is_leased_it_sleeps_a_whole_lease_and_a_little(
    recoverer: Recoverer, enqueue: Callable[..., list[str]]
) -> None:
    enqueue()
    recoverer.tick()
    assert LEASE_SECONDS < recoverer.every <= LEASE_SECONDS + IDLE_MARGIN_SECONDS


def test_a_jump_of_the_server_clock_costs_nobody_a_lease(
    engine: Engine,
    clock: ManualClock,
    recoverer: Recoverer,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enqueue()
    (job,) = lease(lease_ms=100)
    recoverer.tick()
    time.sleep(0.2)
    clock.advance(3600)

    assert recoverer.tick() == {"recovered": 0, "released": 0, "buried": 0}

    assert engine.jobs.get(job.id).state == "leased"
    assert recoverer.every > LEASE_SECONDS / 2


def test_a_machine_that_has_slept_takes_back_at_once_what_ran_out_meanwhile(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    now = [1_000.0]
    recoverer = Recoverer(engine, LEASE_SECONDS, elapsed=lambda: now[0])
    enqueue()
    lease(lease_ms=100)
    recoverer.tick()
    time.sleep(recoverer.every)
    clock.advance(3600)
    now[0] += 3600

    assert recoverer.tick()["released"] == 1


def test_pools_in_which_nothing_is_leased_are_asked_about_together(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, enqueue: Callable[..., list[str]]
) -> None:
    now, recovered = [1_000.0], []
    monkeypatch.setattr("jobs.services.recoverer.monotonic", lambda: now[0])
    recover = engine.leases.recover
    monkeypatch.setattr(
        engine.leases, "recover", lambda route, **options: recovered.append(route.pool) or recover(route, **options)
    )
    recoverer = Recoverer(engine, LEASE_SECONDS)
    for pool in "abc":
        engine.topology.ensure(pool)
    recoverer.tick()
    assert sorted(recovered) == ["a", "b", "c"], "nobody knows of them yet"

    recovered.clear()
    for _ in range(3):
        now[0] += LEASE_SECONDS + IDLE_MARGIN_SECONDS
        recoverer.tick()
    assert recovered == []
    assert recoverer.every == pytest.approx(LEASE_SECONDS + IDLE_MARGIN_SECONDS)

    engine.jobs.enqueue(JobSpec(type="t", pool="b"), [b"{}"])
    engine.leases.lease(engine.topology.route_for("b"), worker="w", token="t", limit=1, lease_ms=5_000)
    now[0] += LEASE_SECONDS + IDLE_MARGIN_SECONDS
    recoverer.tick()
    assert "b" in recovered
    assert recoverer.every <= 5.1
