"""A store that is emptied under a worker: whatever the worker is about at that moment, the job that comes next starts,
and nobody has to wait until a nap or a wait is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.engine.taking import Taking
from jobs.store import connection
from jobs.store.topology import Topology
from jobs.worker import fetcher as fetching
from jobs.worker.fetcher import Fetcher
from jobs.worker.flusher import Flusher
from jobs.worker.slots import PoolSlots
from jobs.worker.standing import Standing
from tests.support.wait import eventually
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher

STEPS: list[tuple[Any, str]] = [
    (Fetcher, "_refresh"),
    (Topology, "pools"),
    (Topology, "ensure"),
    (Taking, "lease"),
    (Standing, "open"),
    (Taking, "wait_and_lease"),
    (Standing, "next_answer"),
    (Standing, "recall"),
    (PoolSlots, "hand"),
    (Standing, "close"),
    (Flusher, "_flush"),
]
"""All that a worker does with the store while jobs come and go, and while it is held and let go."""

LONG_SECONDS = 300.0
"""Nobody waits for it: what starts was heard of."""

EMPTY = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', key) end"


@pytest.fixture(autouse=True)
def _nothing_comes_by_time(monkeypatch: pytest.MonkeyPatch, parts: Parts, gate: Gate) -> Iterator[None]:
    for module, name in (
        (fetching, "IDLE_SECONDS"),
        (fetching, "REFRESH_SECONDS"),
        (connection, "LONGEST_WAIT"),
    ):
        monkeypatch.setattr(module, name, LONG_SECONDS)
    gate.opened.set()
    yield
    parts.engine.leases.pass_on(ROUTE)  # or a thread would stand there for as long


def empty(parts: Parts) -> None:
    """As FLUSHALL does, of what belongs to this test: in one moment."""
    store = parts.engine.store
    store.client.eval(EMPTY, 0, f"{store.namespace}:*")


def emptied_at(
    step: tuple[Any, str], when: str, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> tuple[threading.Event, threading.Event]:
    """(to be set, is set): once the first is set, the next time that somebody takes the step the store is emptied."""
    owner, name = step
    original: Callable[..., Any] = getattr(owner, name)
    wanted, done = threading.Event(), threading.Event()

    def emptying(*args: Any, **kwargs: Any) -> Any:
        is_now = wanted.is_set() and not done.is_set()
        if is_now and when == "before":
            empty(parts)
        answer = original(*args, **kwargs)
        if is_now:
            if when == "after":
                empty(parts)
            done.set()
        return answer

    monkeypatch.setattr(owner, name, emptying)
    return wanted, done


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1].strip("_"))
def test_what_comes_after_the_store_was_emptied_starts(
    step: tuple[Any, str],
    when: str,
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted, done = emptied_at(step, when, parts, monkeypatch)
    fetcher = start_fetcher()
    first = parts.enqueue()
    eventually(lambda: gate.begun == first)

    def is_emptied() -> bool:
        """The worker is led past every step."""
        wanted.set()
        fetcher.hold(True)
        eventually(lambda: not fetcher._standing.is_open)
        fetcher.hold(False)
        parts.enqueue()
        return done.wait(0.3)

    eventually(is_emptied)
    (last,) = parts.enqueue()

    eventually(lambda: last in gate.begun)


def test_a_call_that_was_recalled_from_a_store_that_forgot_it_gives_back_what_it_takes(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    fetcher = start_fetcher()
    eventually(lambda: fetcher._standing.is_open)
    fetcher.hold(True)
    eventually(lambda: not fetcher._standing.is_open)
    empty(parts)

    ids = parts.enqueue()

    eventually(lambda: parts.get(ids[0]).fencing_token == 1 and parts.states(ids) == {"ready"})
    assert (gate.begun, parts.get(ids[0]).attempt) == ([], 0)
