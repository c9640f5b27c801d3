"""One thread of a pool waits at the server, by turns; what it finds there it runs itself where it can."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.worker import database
from jobs.worker.slots import PoolSlots
from jobs.worker.standing import Standing
from jobs.worker.waiter import Waiter
from jobs.worker.work import Work
from tests.support.wait import eventually
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher
from tests.worker.leased import work


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that have waited at the server, in turn."""
    threads: list[int] = []
    ask = Standing.ask

    def noting(*args: Any) -> None:
        threads.append(threading.get_ident())
        ask(*args)

    monkeypatch.setattr(Standing, "ask", noting)
    return threads


def test_whoever_finds_a_single_job_runs_it(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, asking: list[int]
) -> None:
    start_fetcher()
    eventually(lambda: asking)

    ids = parts.enqueue()

    eventually(lambda: gate.begun == ids)
    assert gate.threads == asking[:1]


def test_while_it_runs_another_waits_for_the_next_until_all_slots_are_taken(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, asking: list[int]
) -> None:
    fetcher = start_fetcher(concurrency=2)
    ids: list[str] = []
    for number in (1, 2):
        eventually(lambda: len(asking) == number)  # noqa: B023
        ids += parts.enqueue()
        eventually(lambda: gate.begun == ids)  # noqa: B023
    late = parts.enqueue()
    time.sleep(0.1)

    assert (gate.begun, fetcher.in_hand, len(set(gate.threads))) == (ids, 2, 2)
    gate.opened.set()
    eventually(lambda: parts.states(ids + late) == {"succeeded"})


def test_whoever_has_run_its_job_waits_again_where_nobody_else_was_sent(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, asking: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher = start_fetcher()
    eventually(lambda: asking)
    with monkeypatch.context() as held_up:
        held_up.setattr(fetcher._waiting, "arm", lambda _: None)
        ids = parts.enqueue()
        eventually(lambda: gate.begun == ids)
        gate.opened.set()
        eventually(lambda: parts.states(ids) == {"succeeded"})
    fetcher.look()

    eventually(lambda: len(asking) > 1)
    assert set(asking) == set(gate.threads)


def test_whoever_has_run_a_short_job_waits_again_without_the_fetcher(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, asking: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.opened.set()
    fetcher = start_fetcher()
    eventually(lambda: asking)
    busy, over = threading.Event(), threading.Event()
    monkeypatch.setattr(fetcher, "_rest", lambda _: (busy.set(), over.wait(60)))
    fetcher.look()
    assert busy.wait(60)

    ids: list[str] = []
    for _ in range(3):
        ids += parts.enqueue()
        eventually(lambda: gate.begun == ids)  # noqa: B023

    assert len(asking) >= 3
    over.set()


def test_one_thread_more_than_slots_never_makes_one_job_more(parts: Parts, gate: Gate) -> None:
    pool = PoolSlots(
        "default", 2, cells=parts.cells, execute=gate.execute, settle=lambda *_: None, on_room=lambda: None
    )
    found, *others = [work(parts.cells, number) for number in range(8)]
    hearer = Hearer(lambda: pool.hand([found]))
    pool.waiter = hearer.waiter
    gate.opened.set()
    pool.hand(others[:2])
    eventually(lambda: pool.in_hand == 0)
    gate.opened.clear()
    gate.begun.clear()

    hearer.waiter.arm([ROUTE], 20.0)
    pool.have_one_wait()
    eventually(lambda: len(gate.begun) == 1)
    pool.hand(others[2:])  # nobody waits now: all three threads could work

    eventually(lambda: len(gate.begun) == 2)
    time.sleep(0.1)
    assert (len(gate.begun), pool.in_hand, pool.waiting) == (2, 6, 4)
    gate.opened.set()
    eventually(lambda: pool.in_hand == 0)


def test_jobs_that_come_right_behind_one_that_was_kept_make_none_too_many(parts: Parts, gate: Gate) -> None:
    pool = PoolSlots(
        "default", 2, cells=parts.cells, execute=gate.execute, settle=lambda *_: None, on_room=lambda: None
    )
    found, *others = [work(parts.cells, number) for number in range(5)]

    def hand_all() -> None:
        """The others before the thread that keeps the first has left."""
        pool.hand([found])
        pool.hand(others)

    hearer = Hearer(hand_all)
    pool.waiter = hearer.waiter

    pool.have_one_wait()
    hearer.waiter.arm([ROUTE], 20.0)

    eventually(lambda: len(gate.begun) >= 2)
    time.sleep(0.1)
    assert (len(gate.begun), pool.in_hand, pool.waiting) == (2, 5, 3)
    gate.opened.set()
    eventually(lambda: pool.in_hand == 0)


def test_fewer_slots_leave_one_thread_to_wait(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, asking: list[int]
) -> None:
    gate.opened.set()
    fetcher = start_fetcher(concurrency=None)
    ids = parts.enqueue(count=50)
    eventually(lambda: parts.states(ids) == {"succeeded"})

    parts.engine.pools.configure("default", slots=1)
    fetcher.reconsider()
    eventually(lambda: fetcher.pools[0].size == 1 and sum(not slot.retired for slot in fetcher.pools[0]._slots) == 2)
    gate.opened.clear()
    gate.begun.clear()
    more = parts.enqueue(count=3)

    eventually(lambda: gate.begun == more[:1])
    time.sleep(0.1)
    assert gate.begun == more[:1]


class Hearer:
    """A waiter that hears of a job at once when it is armed, and keeps it where nothing else is said."""

    def __init__(self, on_woken: Callable[[], object] | None = None) -> None:
        self.timeouts: list[float] = []
        nothing: Any = None
        self.work = work(nothing, 1)
        engine: Any = SimpleNamespace(leases=SimpleNamespace(wait_for_work=self._wait_for_work))
        self.waiter = Waiter(
            engine,
            nothing,
            on_turn=lambda: None,
            on_woken=lambda _: (on_woken or self._keep)(),
            on_answer=lambda: False,
            on_end=lambda _: None,
        )

    def _keep(self) -> None:
        self.waiter.keep(self.work)

    def _wait_for_work(self, routes: object, timeout: float) -> object:
        self.timeouts.append(timeout)
        return ROUTE

    def serve(self) -> Callable[[], list[Work]]:
        served: list[Work] = []
        thread = threading.Thread(target=lambda: served.append(self.waiter.serve()))
        thread.start()

        def ended() -> list[Work]:
            thread.join(30)
            return served

        return ended


def test_the_turn_is_for_one_and_free_when_that_one_has_found_a_job() -> None:
    hearer = Hearer()
    assert [hearer.waiter.take_turn(), hearer.waiter.take_turn()] == [True, False]
    ended = hearer.serve()

    hearer.waiter.arm([ROUTE], 20.0)

    assert ended() == [hearer.work]
    assert [hearer.waiter.take_turn(), hearer.waiter.take_turn()] == [True, False]


def test_only_the_thread_that_waits_can_keep_a_job() -> None:
    hearer = Hearer()

    assert not hearer.waiter.keep(hearer.work)


def test_who_waits_closes_the_connections_that_have_grown_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    hearer, closed = Hearer(), threading.Event()
    ages = iter([0.01])
    monkeypatch.setattr(database, "seconds_until_stale", lambda: next(ages, None))
    monkeypatch.setattr(database, "close_stale", closed.set)
    ended = hearer.serve()

    assert closed.wait(30), "while it is not armed"
    hearer.waiter.arm([ROUTE], 20.0)
    assert ended() == [hearer.work]


def test_a_wait_is_over_when_a_connection_grows_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    hearer = Hearer()
    monkeypatch.setattr(database, "seconds_until_stale", lambda: 3.0)
    hearer.waiter.arm([ROUTE], 20.0)

    assert hearer.serve()() == [hearer.work]
    assert hearer.timeouts == [3.0]
