from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from jobs.core.job import LeasedJob
from jobs.engine import Engine
from jobs.exceptions import StoreUnavailable
from jobs.registry import registry
from jobs.services import promoter as promoter_module
from jobs.services.promoter import BATCH, EVERY_SECONDS, IDLE_SECONDS, Promoter
from jobs.store.keys import SettingKeys
from tests.acceptance.handlers import jobs as handlers
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    assert handlers.echo.name in registry
    with registry.restored():
        yield


def test_all_that_is_due_becomes_ready_and_nothing_earlier(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]]
) -> None:
    due = enqueue(BATCH + 10, delay_ms=1000)
    (later,) = enqueue(delay_ms=1001)
    clock.advance(1.0)

    assert Promoter(engine).tick()["promoted"] == BATCH + 10

    assert engine.jobs.get(due[-1]).state == "ready"
    assert engine.jobs.get(later).state == "scheduled"


def test_pools_that_nobody_serves_are_looked_after_too(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]]
) -> None:
    enqueue(pool="nobody", delay_ms=10)
    clock.advance(1.0)
    assert Promoter(engine).tick()["promoted"] == 1


def test_it_looks_again_when_the_next_job_comes_due(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(delay_ms=30_000)
    promoter = Promoter(engine)
    now = promoter_module.monotonic()
    monkeypatch.setattr(promoter_module, "monotonic", lambda: now)
    promoter.tick()
    clock.advance(30)

    now += 29
    assert promoter.tick()["promoted"] == 0
    now += 1.1
    assert promoter.tick()["promoted"] == 1


def test_partitions_without_delayed_jobs_are_asked_about_together_and_now_and_then(
    engine: Engine, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue()
    engine.topology.ensure("other")
    ask, promote, asked, looks = engine.leases.none_comes_due, engine.leases.promote, list[int](), list[Any]()
    monkeypatch.setattr(engine.leases, "none_comes_due", lambda routes: asked.append(len(routes)) or ask(routes))
    monkeypatch.setattr(engine.leases, "promote", lambda *given: looks.append(given) or promote(*given))
    promoter = Promoter(engine)
    for _ in range(3):
        promoter.tick()
    now = promoter_module.monotonic() + IDLE_SECONDS
    monkeypatch.setattr(promoter_module, "monotonic", lambda: now)
    promoter.tick()

    assert [number for number in asked if number] == [2, 2]
    assert looks == []

    enqueue(delay_ms=1)
    now += IDLE_SECONDS
    promoter.tick()
    assert len(looks) == 2


def test_hosts_do_not_tick_in_step(engine: Engine) -> None:
    promoter = Promoter(engine)
    pauses = {promoter.every for _ in range(10)}
    assert len(pauses) > 1
    assert all(0.9 * EVERY_SECONDS <= pause <= 1.1 * EVERY_SECONDS for pause in pauses)


def test_parked_jobs_come_back_when_this_host_may_run_them(
    engine: Engine, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    enqueue()
    (job,) = lease()
    engine.types.set("test.echo", {"enabled": False})
    engine.leases.park(ROUTE, [(job.id, job.token, job.type)])
    promoter = Promoter(engine)

    assert promoter.tick()["unparked"] == 0
    # Whoever enabled it died before the jobs were put back.
    engine.store.run("type_set", SettingKeys(engine.store.namespace), type="test.echo", overrides="", disabled="")
    assert promoter.tick()["unparked"] == 1

    assert not engine.jobs.get(job.id).parked


def test_a_look_for_parked_jobs_that_failed_is_made_again(
    engine: Engine,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enqueue()
    (job,) = lease()
    engine.leases.park(ROUTE, [(job.id, job.token, job.type)])
    promoter = Promoter(engine)
    with monkeypatch.context() as away:
        away.setattr(engine.leases, "unpark", Mock(side_effect=StoreUnavailable))
        with pytest.raises(StoreUnavailable):
            promoter.tick()

    assert promoter.tick()["unparked"] == 1


def test_types_that_this_host_does_not_know_stay_parked(
    engine: Engine, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    enqueue(type="no.such.type")
    (job,) = lease()
    engine.leases.park(ROUTE, [(job.id, job.token, job.type)])

    assert Promoter(engine).tick()["unparked"] == 0


def test_while_nothing_changes_parked_jobs_are_looked_for_now_and_then_only(
    engine: Engine, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue()
    looks: list[Any] = []
    monkeypatch.setattr(engine.leases, "none_is_parked", lambda routes: looks.append(routes) or True)
    promoter = Promoter(engine)
    for _ in range(5):
        promoter.tick()
    assert looks == [[ROUTE]]
