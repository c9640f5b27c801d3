"""A fetcher between a real store and real slot threads, with handlers that the test holds in its hand."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from jobs.engine import Scope
from jobs.engine.taking import Taking
from jobs.exceptions import OutcomeUnknown
from jobs.store.codec.ids import new_ids
from jobs.store.keys import SettingKeys, partition_keys
from jobs.worker.fetcher import Fetcher
from jobs.worker.line import STALL_SECONDS
from jobs.worker.lookahead import Lookahead
from jobs.worker.naps import FULL_SECONDS
from jobs.worker.slots import PoolSlots
from jobs.worker.standing import Standing
from tests.acceptance.handlers import jobs as handlers
from tests.support.wait import eventually, soon
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher
from tests.worker.leased import work


def test_of_jobs_whose_length_is_unknown_it_takes_no_more_than_it_can_run(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    ids = parts.enqueue(count=10)

    fetcher = start_fetcher(concurrency=3)

    eventually(lambda: len(gate.begun) == 3)
    time.sleep(0.1)
    assert fetcher.in_hand == 3
    assert parts.states(ids[3:]) == {"ready"}


def test_a_pool_that_an_emptied_store_has_forgotten_is_entered_anew(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    gate.opened.set()
    fetcher = start_fetcher()
    ids = parts.enqueue(count=1)
    eventually(lambda: parts.states(ids) == {"succeeded"})
    store = parts.engine.store

    store.client.delete(SettingKeys(store.namespace).topology)
    fetcher.reconsider()

    eventually(lambda: ROUTE in parts.engine.topology.partitions("default", fresh=True))


def test_of_short_jobs_it_takes_many_in_one_call(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    gate.opened.set()
    ids = parts.enqueue(count=3000)

    start_fetcher()

    eventually(lambda: parts.states(ids[-1:]) == {"succeeded"})
    assert max(len(batch) for _, batch in parts.opened) > 100
    eventually(lambda: sorted(parts.closed) == [number for number, _ in parts.opened])


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


def test_a_job_that_falls_due_starts_then(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    asked_at = time.monotonic()
    parts.enqueue(delay_ms=400)
    start_fetcher()

    eventually(lambda: gate.begun)

    assert 0.39 < time.monotonic() - asked_at < soon(2.0)


def test_what_waits_behind_a_long_job_goes_back_uncharged(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    gate.opened.set()
    start_fetcher(concurrency=1)
    shorts = parts.enqueue(count=500)
    eventually(lambda: parts.states(shorts[-1:]) == {"succeeded"})
    gate.opened.clear()

    longs = parts.enqueue(count=50)

    eventually(lambda: gate.begun[-1] == longs[0])
    eventually(lambda: parts.states(longs[1:]) == {"ready"})
    assert {parts.get(job_id).attempt for job_id in longs[1:]} == {0}


def test_jobs_that_come_after_a_long_silence_have_not_waited_yet(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("jobs.worker.line.monotonic", lambda: now)  # nor do they wait later, in a slow test
    gate.opened.set()
    start_fetcher(concurrency=2)
    parts.enqueue(count=200)
    eventually(lambda: len(gate.begun) == 200)
    now = 3 * STALL_SECONDS

    ids = parts.enqueue(count=200)

    eventually(lambda: parts.states(ids) == {"succeeded"})
    assert {parts.get(job_id).fencing_token for job_id in ids} == {1}


def test_on_the_way_out_it_hands_back_what_has_not_begun_and_takes_nothing_more(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    fetcher = start_fetcher()
    running = parts.enqueue(count=2)
    eventually(lambda: len(gate.begun) == 2)
    later = parts.enqueue(count=5)

    fetcher.quiesce()
    eventually(lambda: fetcher.is_quiet)
    fetcher.hand_back()
    gate.opened.set()

    eventually(lambda: parts.states(running) == {"succeeded"})
    assert parts.states(later) == {"ready"}
    assert fetcher.in_hand == 0


def test_an_answer_that_was_lost_is_asked_for_again_with_the_same_token(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job_id,) = parts.enqueue()
    lease, tokens = parts.engine.leases.lease, []

    def forgetful(*args: Any, **kwargs: Any) -> Any:
        reply = lease(*args, **kwargs)
        tokens.append(kwargs["token"])
        if len(tokens) == 1:
            raise OutcomeUnknown("the answer was lost")
        return reply

    monkeypatch.setattr(parts.engine.leases, "lease", forgetful)
    start_fetcher()

    eventually(lambda: gate.begun == [job_id])
    assert tokens[0] == tokens[1]
    assert parts.get(job_id).attempt == 1


def test_types_that_nobody_here_knows_or_may_run_are_parked(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    gate.opened.set()
    parts.engine.types.set("test.nothing", {"enabled": False})
    (stranger,) = parts.enqueue("no.such.type")
    (disabled,) = parts.enqueue("test.nothing")
    (known,) = parts.enqueue()

    start_fetcher()

    eventually(lambda: parts.states([known]) == {"succeeded"})
    eventually(lambda: parts.get(stranger).parked and parts.get(disabled).parked)
    assert gate.begun == [known]


def test_max_in_flight_is_over_all_pools(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    parts.enqueue(count=5)
    parts.enqueue(count=5, pool="other")

    fetcher = start_fetcher(pools=("default", "other"), concurrency=4, max_in_flight=3)

    eventually(lambda: len(gate.begun) == 3)
    time.sleep(0.1)
    assert fetcher.in_hand == 3


def test_it_says_when_its_share_of_jobs_is_spent(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    gate.opened.set()
    spent = threading.Event()
    ids = parts.enqueue(count=50)

    start_fetcher(max_jobs=20, on_spent=spent.set)

    assert spent.wait(60)
    eventually(lambda: sum(parts.get(job_id).state == "succeeded" for job_id in ids) == 20)


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


def test_a_pause_is_a_reason_not_to_consume(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    parts.engine.topology.ensure("default")
    parts.engine.pools.pause("default", by="a test")
    parts.enqueue(count=3)

    fetcher = start_fetcher()

    eventually(lambda: fetcher.trouble == "paused" and fetcher.is_idle)
    assert not gate.begun
    parts.engine.pools.resume("default")
    eventually(lambda: len(gate.begun) == 2 and fetcher.trouble is None)


def test_slots_follow_what_people_set_as_soon_as_it_is_heard_of(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.enqueue(count=20)
    fetcher = start_fetcher(concurrency=None)
    eventually(lambda: len(gate.begun) == 10)

    parts.engine.pools.configure("default", slots=12)
    fetcher.reconsider()
    eventually(lambda: len(gate.begun) == 12)

    parts.engine.pools.configure("default", slots=0)
    fetcher.reconsider()
    eventually(lambda: fetcher.pools[0].size == 0)
    gate.opened.set()
    eventually(lambda: fetcher.in_hand == 0)
    time.sleep(0.1)
    assert len(gate.begun) == 12


def test_what_waits_for_slots_that_are_gone_goes_back_also_where_nobody_told_of_it(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.worker.line.STALL_SECONDS", 60.0)
    gate.opened.set()
    fetcher = start_fetcher(concurrency=None)
    shorts = parts.enqueue(count=500)
    eventually(lambda: parts.states(shorts[-1:]) == {"succeeded"})
    gate.opened.clear()
    longs = parts.enqueue(count=50)
    eventually(lambda: gate.begun[-1] in longs and fetcher.pools[0].waiting)

    parts.engine.pools.configure("default", slots=0)
    fetcher.look()

    eventually(lambda: parts.states([job_id for job_id in longs if job_id not in gate.begun]) == {"ready"})


def test_pools_come_into_being_by_settings_and_by_use(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    """A host without names serves all there are, those too that nobody has used yet."""
    parts.engine.settings = replace(parts.engine.settings, pools={"named": 3})
    fetcher = start_fetcher(pools=(), concurrency=None)

    def slots() -> dict[str, int]:
        return {pool.name: pool.size for pool in fetcher.pools}

    eventually(lambda: slots().get("named") == 3)
    assert parts.engine.topology.has("named")

    parts.enqueue(pool="used")
    fetcher.look()
    eventually(lambda: slots().get("used") == parts.engine.settings.slots)
    eventually(lambda: gate.begun)


def test_a_number_set_while_the_host_runs_beats_its_command_line(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.engine.pools.configure("default", slots=5)
    parts.enqueue(count=20)
    fetcher = start_fetcher(concurrency=3, configured={"default": 5})
    eventually(lambda: len(gate.begun) == 3)

    parts.engine.pools.configure("default", slots=6)
    fetcher.reconsider()

    eventually(lambda: len(gate.begun) == 6)


def test_pools_share_slots_by_weight_and_use_what_others_leave(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.enqueue(count=20)
    of_other = set(parts.enqueue(count=20, pool="other"))

    fetcher = start_fetcher(
        pools=("default", "other"), concurrency=None, shared_slots=4, weights={"default": 3, "other": 1}
    )

    eventually(lambda: len(gate.begun) == 4)
    time.sleep(0.1)
    assert (fetcher.in_hand, len(of_other & set(gate.begun))) == (4, 1)
    parts.engine.pools.configure("other", slots=0)
    fetcher.reconsider()
    eventually(lambda: {pool.name: pool.size for pool in fetcher.pools} == {"default": 4, "other": 0})
    gate.opened.set()
    eventually(lambda: len(gate.begun) == 21)
    assert len(of_other & set(gate.begun)) == 1, "a pool that is held does not slow the other"


@pytest.fixture
def with_some_ready(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> tuple[Fetcher, list[str]]:
    """One job runs, and many are held ready behind it as after jobs that were short, however long they wait."""
    monkeypatch.setattr("jobs.worker.line.STALL_SECONDS", math.inf)
    monkeypatch.setattr(Lookahead, "jobs", lambda self, slots: 40)
    ids = parts.enqueue(count=50)
    fetcher = start_fetcher(concurrency=1)
    eventually(lambda: (gate.begun, [pool.waiting for pool in fetcher.pools]) == (ids[:1], [40]))
    return fetcher, ids


def test_what_has_not_begun_goes_back_when_something_was_changed(
    parts: Parts, gate: Gate, with_some_ready: tuple[Fetcher, list[str]]
) -> None:
    """Jobs that were short are held ready by the hundred; then one is long, and the pool is paused."""
    fetcher, ids = with_some_ready

    parts.engine.pools.pause("default", by="a test")
    fetcher.reconsider()

    settle = parts.engine.pauses.settle
    eventually(lambda: settle(Scope("pool", "default"), timeout=0.1) <= 1)  # one has begun and is not marked
    gate.opened.set()
    eventually(lambda: parts.states(ids) == {"ready", "succeeded"})
    assert (len(gate.begun), fetcher.in_hand) == (1, 0)


def test_while_it_is_held_what_has_not_begun_is_back_and_nothing_is_taken(
    parts: Parts, gate: Gate, with_some_ready: tuple[Fetcher, list[str]]
) -> None:
    fetcher, ids = with_some_ready

    fetcher.hold(True)

    eventually(lambda: fetcher.in_hand == 1)
    gate.opened.set()
    eventually(lambda: parts.states(ids[:1]) == {"succeeded"})
    eventually(lambda: parts.states(ids[1:]) == {"ready"})
    assert (gate.begun, {parts.get(job_id).attempt for job_id in ids[1:]}) == (ids[:1], {0})

    fetcher.hold(False)
    eventually(lambda: parts.states(ids) == {"succeeded"})


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


def test_slots_follow_their_wanted_number_in_both_directions(parts: Parts, gate: Gate) -> None:
    pool = PoolSlots(
        "default",
        4,
        cells=parts.cells,
        execute=gate.execute,
        settle=lambda batch, settlement: None,
        on_room=lambda: None,
    )
    gate.opened.set()
    works = [work(parts.cells, number) for number in range(40)]
    pool.hand(works[:20])
    eventually(lambda: pool.in_hand == 0)

    pool.resize(1)
    gate.opened.clear()
    pool.hand(works[20:30])
    eventually(lambda: pool.waiting == 9)
    assert len(pool.take_back()) == 9

    pool.resize(3)
    pool.hand(works[30:33])
    eventually(lambda: len(gate.begun) == 20 + 1 + 2)
    gate.opened.set()
    eventually(lambda: pool.in_hand == 0)
