"""What a fetcher waits for at the server, and who hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from jobs.engine.taking import Taking
from jobs.exceptions import OutcomeUnknown
from jobs.store.codec.ids import new_ids
from jobs.store.keys import SettingKeys, partition_keys
from jobs.worker.fetcher import Fetcher
from jobs.worker.naps import FULL_SECONDS
from jobs.worker.standing import Standing
from tests.acceptance.handlers import jobs as handlers
from tests.support.wait import eventually, soon
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher


def test_a_wait_for_work_ends_when_work_comes(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    fetcher = start_fetcher()
    eventually(lambda: fetcher.is_idle)

    parts.enqueue()
    begun = time.monotonic()

    eventually(lambda: gate.begun)
    assert time.monotonic() - begun < soon(2.0)


def test_whoever_is_woken_for_a_job_leases_it(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    takers: list[str] = []
    lease = parts.engine.leases.lease
    monkeypatch.setattr(Taking, "can_stand", False)
    fetcher = start_fetcher()
    eventually(lambda: fetcher.is_idle)

    def noting(*args: Any, **kwargs: Any) -> Any:
        takers.append(threading.current_thread().name)
        return lease(*args, **kwargs)

    monkeypatch.setattr(parts.engine.leases, "lease", noting)
    parts.enqueue()

    eventually(lambda: gate.begun)
    assert takers[:1] == ["default-slot"]


def test_a_job_that_the_woken_could_not_lease_is_leased_by_the_fetcher(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = parts.engine.leases.lease
    monkeypatch.setattr(Taking, "can_stand", False)
    fetcher = start_fetcher()
    eventually(lambda: fetcher.is_idle)

    def failing(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread().name != "fetcher":
            raise OutcomeUnknown("cut off")
        return lease(*args, **kwargs)

    monkeypatch.setattr(parts.engine.leases, "lease", failing)
    ids = parts.enqueue()

    eventually(lambda: gate.begun == ids)


def test_a_job_whose_wake_up_was_lost_is_found_in_whichever_pool(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Taking, "can_stand", False)
    fetcher = start_fetcher(pools=("default", "other", "third"), burst=True)
    eventually(lambda: fetcher.is_idle)

    parts.engine.leases.wait_for_work = lambda routes, timeout: time.sleep(timeout)  # type: ignore[method-assign, assignment]
    time.sleep(0.3)  # whoever waited before has been told
    (job,) = parts.enqueue(pool="other")
    parts.engine.store.client.delete(partition_keys(parts.engine.store.namespace, ROUTE._replace(pool="other")).wake)

    eventually(lambda: gate.begun == [job])


def test_a_pool_that_was_full_hears_of_its_next_job_at_once(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    start_fetcher(pools=("default", "other"), concurrency=1)
    parts.enqueue()  # fills its pool
    eventually(lambda: len(gate.begun) == 1)
    parts.enqueue(pool="other")  # the wait begins anew while the first pool is full
    eventually(lambda: len(gate.begun) == 2)
    gate.opened.set()
    eventually(lambda: len(parts.closed) == 2)

    begun = time.monotonic()
    parts.enqueue()

    eventually(lambda: len(gate.begun) == 3)
    assert time.monotonic() - begun < soon(2.0)


def test_a_partition_that_was_full_is_heard_of_again_though_another_is_waited_for(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []
    ask = Standing.ask

    def noting(standing: Standing, call: Any, timeout: float) -> None:
        timeouts.append(timeout)
        ask(standing, call, timeout)

    monkeypatch.setattr(Standing, "ask", noting)
    store = parts.engine.store
    store.client.hset(SettingKeys(store.namespace).topology, "wide", b'{"1": 2}')
    _, route = parts.engine.topology.partitions("wide", fresh=True)

    def enqueue() -> str:
        spec = msgspec.structs.replace(handlers.echo.defaults, pool="wide")
        (made,) = parts.engine.jobs.enqueue(spec, [b"{}"], ids=new_ids(route, 1))
        return made.id

    parts.engine.pools.configure("wide", max_running=2)  # one in each
    first, second = enqueue(), enqueue()
    fetcher = start_fetcher(pools=("wide",))
    eventually(lambda: gate.begun == [first] and route in fetcher._naps.full and timeouts)
    assert timeouts[-1] < FULL_SECONDS
    gate.opened.set()
    eventually(lambda: parts.states([first, second]) == {"succeeded"})

    third = enqueue()

    eventually(lambda: gate.begun == [first, second, third])


@pytest.mark.parametrize("takes_nothing", [lambda fetcher: fetcher.hold(True), lambda fetcher: fetcher.quiesce()])
def test_who_takes_nothing_passes_a_wake_up_on(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, takes_nothing: Callable[[Fetcher], None]
) -> None:
    held = start_fetcher()
    eventually(lambda: held.is_idle and held._lines["default"].waiter.is_armed)
    other = start_fetcher()
    eventually(lambda: other.is_idle and other._lines["default"].waiter.is_armed)

    takes_nothing(held)
    parts.enqueue()

    eventually(lambda: len(gate.begun) == 1, within=soon(3))
    assert (held.in_hand, other.in_hand) == (0, 1)


@pytest.mark.parametrize("limit", [{"max_in_flight": 1}, {"shared_slots": 1, "weights": {"default": 1, "other": 1}}])
def test_who_has_no_room_any_more_passes_a_wake_up_on(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    monkeypatch.setattr(Taking, "can_stand", False)
    full = start_fetcher(pools=("default", "other"), **limit)
    eventually(lambda: full.is_idle and all(line.waiter.is_armed for line in full._lines.values()))
    parts.enqueue()
    eventually(lambda: len(gate.begun) == 1)
    other = start_fetcher(pools=("other",))
    eventually(lambda: other.is_idle and other._lines["other"].waiter.is_armed)

    parts.enqueue(pool="other")  # for which the first has been waiting longer

    eventually(lambda: len(gate.begun) == 2, within=soon(3))
    assert (full.in_hand, other.in_hand) == (1, 1)


def test_a_call_that_is_sent_as_it_falls_quiet_is_recalled(
    parts: Parts, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher = start_fetcher()
    eventually(lambda: fetcher.is_idle and fetcher._standing.is_open)

    with fetcher._at_work:  # a waiter's thread that is at work
        fetcher._waiting.recall_all()
        fetcher.quiesce()
        time.sleep(0.1)
        fetcher._standing.open(ROUTE, 1)

    eventually(lambda: fetcher.is_quiet)
