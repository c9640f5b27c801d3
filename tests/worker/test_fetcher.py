"""A fetcher between a real store and real slot threads, with handlers that the test holds in its hand."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import pytest

from jobs.engine import Scope
from jobs.exceptions import OutcomeUnknown
from jobs.worker.fetcher import REFRESH_SECONDS, Fetcher
from jobs.worker.line import STALL_SECONDS
from jobs.worker.lookahead import Lookahead
from tests.support.wait import eventually, soon
from tests.worker.conftest import Gate, Parts, StartFetcher


def test_of_jobs_whose_length_is_unknown_it_takes_no_more_than_it_can_run(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    ids = parts.enqueue(count=10)

    fetcher = start_fetcher(concurrency=3)

    eventually(lambda: len(gate.begun) == 3)
    time.sleep(0.1)
    assert fetcher.in_hand == 3
    assert parts.states(ids[3:]) == {"ready"}


def test_of_short_jobs_it_takes_many_in_one_call(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    gate.opened.set()
    ids = parts.enqueue(count=3000)

    start_fetcher()

    eventually(lambda: parts.states(ids[-1:]) == {"succeeded"})
    assert max(len(batch) for _, batch in parts.opened) > 100
    eventually(lambda: sorted(parts.closed) == [number for number, _ in parts.opened])


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


def test_a_pool_that_comes_while_it_looks_for_pools_is_found_at_once(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.opened.set()
    configured, fetchers = parts.engine.pools.configured, list[Fetcher]()

    def meanwhile() -> Any:  # the pools that there are have been read, and nothing was made of them yet
        if fetchers:
            parts.enqueue(pool="new")
            fetchers.pop().look()
        return configured()

    monkeypatch.setattr(parts.engine.pools, "configured", meanwhile)
    fetcher = start_fetcher(pools=())
    eventually(lambda: fetcher.is_idle)

    fetchers.append(fetcher)
    fetcher.look()

    eventually(lambda: len(gate.begun) == 1, within=REFRESH_SECONDS / 2)


def test_it_says_when_its_share_of_jobs_is_spent(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    gate.opened.set()
    spent = threading.Event()
    ids = parts.enqueue(count=50)

    start_fetcher(max_jobs=20, on_spent=spent.set)

    assert spent.wait(60)
    eventually(lambda: sum(parts.get(job_id).state == "succeeded" for job_id in ids) == 20)


def test_a_pause_is_a_reason_not_to_consume(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    parts.engine.topology.ensure("default")
    parts.engine.pools.pause("default", by="a test")
    parts.enqueue(count=3)

    fetcher = start_fetcher()

    eventually(lambda: fetcher.trouble == "paused" and fetcher.is_idle)
    assert not gate.begun
    parts.engine.pools.resume("default")
    eventually(lambda: len(gate.begun) == 2 and fetcher.trouble is None)


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
