"""The watch over the queues: one call when a wait becomes too long, not one each time it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.engine import Engine
from jobs.services import queue_watch
from jobs.services.queue_watch import HOLD_MS, REMIND_SECONDS, QueueWatch
from tests.support.clock import ManualClock


class Pools:
    """Pools whose waits the test sets."""

    def __init__(self) -> None:
        self.waits: dict[str, float | None] = {}

    def all(self) -> list[Any]:
        return [SimpleNamespace(name=name, predicted_wait_seconds=wait) for name, wait in self.waits.items()]


@pytest.fixture
def pools() -> Pools:
    return Pools()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def watch(pools: Pools, told: list[str]) -> QueueWatch:
    engine: Any = SimpleNamespace(pools=pools, duties=SimpleNamespace(take=lambda *_: True))
    return QueueWatch(engine, lambda pool: told.append(pool.name), threshold=60.0)


def test_a_pool_that_becomes_too_slow_is_told_of_once(watch: QueueWatch, pools: Pools, told: list[str]) -> None:
    for wait in (None, 0.0, 59.9, 60.0, 100.0, 61.0):
        pools.waits = {"default": wait, "quick": 0.1}
        watch.tick()

    assert told == ["default"]


def test_it_is_told_of_again_after_it_was_quick(watch: QueueWatch, pools: Pools, told: list[str]) -> None:
    for wait in (60.0, 1.0, 60.0):
        pools.waits = {"default": wait}
        watch.tick()

    assert told == ["default", "default"]


def test_and_now_and_then_while_it_stays_slow(
    watch: QueueWatch, pools: Pools, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pools.waits = {"default": 60.0}
    for passed in (0.0, REMIND_SECONDS / 2, REMIND_SECONDS):
        monkeypatch.setattr(queue_watch, "monotonic", lambda passed=passed: 1_000.0 + passed)
        watch.tick()

    assert told == ["default", "default"]


def test_the_real_pools_have_what_it_looks_at(
    engine: Engine, enqueue: Callable[..., list[str]], told: list[str]
) -> None:
    enqueue()
    counts = QueueWatch(engine, lambda pool: told.append(pool.name), threshold=0.0).tick()

    assert counts == {"long_queues": 1}
    assert told == ["default"]


def test_one_host_watches_and_another_when_it_is_silent(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], told: list[str]
) -> None:
    enqueue()
    first, second = (QueueWatch(engine, lambda pool: told.append(pool.name), threshold=0.0) for _ in range(2))

    assert [first.tick(), second.tick(), first.tick()] == [{"long_queues": 1}, {"long_queues": 0}, {"long_queues": 0}]
    clock.advance(HOLD_MS / 1000 + 0.001)
    assert second.tick() == {"long_queues": 1}
