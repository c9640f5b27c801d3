"""Lease calls that stand at the server: what comes of them, when it counts from, and how they are had back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from jobs.engine.taking import Taking
from jobs.exceptions import OutcomeUnknown
from jobs.store import client
from jobs.store.keys import partition_keys
from jobs.worker import standing
from jobs.worker.standing import CLOCK_SECONDS, DRIFT_SECONDS, LOST_SECONDS, ServerClock, Standing
from tests.faults.seeded_bugs import STANDING_BUGS, PythonBug
from tests.support.wait import eventually
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher

NOW_MS = 1_800_000_000_000


class Monotonic:
    """A clock that goes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(standing, "monotonic", lambda: self.now)


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    return Monotonic(monkeypatch)


@pytest.fixture
def clock(local: Monotonic) -> ServerClock:
    """It showed ``NOW_MS`` at 1,000 s of the local one."""
    clock = ServerClock()
    clock.note(NOW_MS, local.now)
    return clock


def test_a_lease_counts_from_when_the_server_gave_it_and_no_later(clock: ServerClock, local: Monotonic) -> None:
    local.now += 15.4

    assert clock.earliest(NOW_MS + 15_000) == pytest.approx(1015.0 - DRIFT_SECONDS)


@pytest.mark.parametrize(
    ("shown_ms", "after"),
    [(NOW_MS + 5_000, 12.0), (NOW_MS + 5_000, 3.0), (NOW_MS, 10.0), (NOW_MS - 3_600_000, 10.0)],
    ids=["this process stood still", "the clock was put on", "it stands still", "it was put back"],
)
def test_an_answer_of_an_odd_time_is_not_believed_and_the_clock_is_unfit_for_a_while(
    clock: ServerClock, local: Monotonic, shown_ms: int, after: float
) -> None:
    local.now += after

    assert clock.earliest(shown_ms) is None
    assert not clock.is_fit
    local.now += CLOCK_SECONDS
    assert clock.is_fit


def test_a_clock_must_have_been_seen_lately_and_at_once(clock: ServerClock, local: Monotonic) -> None:
    assert clock.is_known
    local.now += CLOCK_SECONDS
    assert not clock.is_known

    clock.note(NOW_MS + 60_000, local.now - 2)

    assert not clock.is_known, "the answer took two seconds"
    assert not clock.is_fit, "a server that is slow is asked again and again"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whether a standing call has been sent. Whose clients are blocked, the server does not tell."""
    event, ended_wait = threading.Event(), client._ended_wait

    def noting(*args: Any) -> None:
        event.set()
        ended_wait(*args)

    monkeypatch.setattr(client, "_ended_wait", noting)
    return event


def stands(sent: threading.Event, parts: Parts) -> None:
    """Waits until a call is at the server."""
    assert sent.wait(60)
    client = parts.engine.store.client
    eventually(lambda: any(each["cmd"] == "blpop" and "b" in each["flags"] for each in client.client_list()))


def passed_on(parts: Parts, ids: list[str]) -> bool:
    """Whether these jobs wait for another worker, once it is known where they go: the server has woken nobody else."""
    wake = partition_keys(parts.engine.store.namespace, ROUTE).wake
    eventually(lambda: parts.engine.store.client.llen(wake) or parts.states(ids) == {"leased"})
    return parts.states(ids) == {"ready"} and {parts.get(job_id).fencing_token for job_id in ids} == {0}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens of all ordinary lease calls from now on."""
    tokens: list[str] = []
    lease = Taking.lease

    def noting(self: Taking, *args: Any, **kwargs: Any) -> Any:
        tokens.append(kwargs["token"])
        return lease(self, *args, **kwargs)

    monkeypatch.setattr(Taking, "lease", noting)
    return tokens


def test_a_job_that_comes_to_an_idle_worker_is_not_asked_for(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, sent: threading.Event, asked: list[str]
) -> None:
    start_fetcher()
    stands(sent, parts)
    asked.clear()

    ids = parts.enqueue()

    eventually(lambda: gate.begun == ids)
    assert asked == []
    assert parts.get(ids[0]).fencing_token == 1


def test_a_worker_that_is_held_takes_nothing_and_wakes_another(
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetcher = start_fetcher()
    stands(sent, parts)
    fetcher.hold(True)
    eventually(lambda: not fetcher._standing.is_open)

    ids = parts.enqueue()

    assert passed_on(parts, ids)
    fetcher.hold(False)
    eventually(lambda: gate.begun == ids)


def test_on_the_way_out_it_is_quiet_only_when_nothing_more_can_come(
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetcher = start_fetcher()
    stands(sent, parts)

    fetcher.quiesce()
    eventually(lambda: fetcher.is_quiet)
    ids = parts.enqueue()

    assert passed_on(parts, ids)


def test_an_answer_that_comes_while_the_fetcher_is_busy_is_taken_before_another_call_stands(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, sent: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher = start_fetcher()
    stands(sent, parts)
    return_stalled, ids = fetcher._return_stalled, []

    def busy() -> None:
        """It has looked for answers, and is about to wait."""
        if not ids:
            ids.extend(parts.enqueue())
            eventually(lambda: not any(line.waiter.is_armed for line in fetcher._lines.values()))
        return_stalled()

    monkeypatch.setattr(fetcher, "_return_stalled", busy)
    fetcher.look()

    eventually(lambda: ids and gate.begun == ids)


def test_no_call_can_begin_while_it_is_asked_whether_one_may_bring_something(
    start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would be taken for quiet between a call that is about to stand and one that does."""
    fetcher = start_fetcher()
    fetcher.quiesce()
    fetcher.join()
    free: list[bool] = []

    def noting(_: Standing) -> bool:
        free.append(not fetcher._leasing.locked())
        return False

    monkeypatch.setattr(Standing, "is_open", property(noting))

    assert fetcher.is_quiet
    assert free == [False]


def test_an_answer_that_was_lost_is_had_back(
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait_and_lease = Taking.wait_and_lease
    lost: list[str] = []

    def forgetful(self: Taking, *args: Any, **kwargs: Any) -> Any:
        reply = wait_and_lease(self, *args, **kwargs)
        if reply.jobs and not lost:
            lost.extend(job.id for job in reply.jobs)
            raise OutcomeUnknown("the answer was lost")
        return reply

    monkeypatch.setattr(Taking, "wait_and_lease", forgetful)
    start_fetcher()
    stands(sent, parts)

    ids = parts.enqueue()

    eventually(lambda: gate.begun == ids)
    assert lost == ids
    assert (parts.get(ids[0]).attempt, parts.get(ids[0]).fencing_token) == (1, 2)


def test_a_call_that_was_lost_and_stands_yet_takes_nothing_whatever_comes_after_it(
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection is broken, and the server does not know."""
    wait_and_lease = Taking.wait_and_lease
    forgotten: list[threading.Thread] = []

    def broken(self: Taking, *args: Any, **kwargs: Any) -> Any:
        if forgotten:
            return wait_and_lease(self, *args, **kwargs)
        forgotten.append(threading.Thread(target=lambda: wait_and_lease(self, *args, **kwargs)))
        forgotten[0].start()
        stands(sent, parts)
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(Taking, "wait_and_lease", broken)
    fetcher = start_fetcher()
    eventually(lambda: forgotten and not fetcher._standing.is_open and fetcher._lines["default"].waiter.is_armed)
    fetcher.hold(True)
    eventually(lambda: not fetcher._is_outdated and not fetcher._standing.is_open)
    fetcher.hold(False)

    ids = parts.enqueue()

    eventually(lambda: gate.begun == ids, within=20)
    forgotten[0].join()


def test_calls_stand_again_when_one_that_was_lost_cannot_stand_any_more(
    parts: Parts, local: Monotonic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(Taking, "wait_and_lease", broken)
    standing = Standing(parts.engine, "w", 30_000)
    assert standing.may_open(ROUTE)

    with pytest.raises(OutcomeUnknown):
        standing.ask(standing.open(ROUTE, 1), 18.0)

    assert not standing.may_open(ROUTE)
    local.now += LOST_SECONDS
    assert standing.may_open(ROUTE)


def test_what_is_read_late_goes_back_before_it_begins(
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a worker that was stopped while it waited."""
    wait_and_lease = Taking.wait_and_lease
    monkeypatch.setattr(standing, "FRESH_SECONDS", 0.3)

    def slow(self: Taking, *args: Any, **kwargs: Any) -> Any:
        reply = wait_and_lease(self, *args, **kwargs)
        if reply.jobs:
            time.sleep(0.5)
        return reply

    monkeypatch.setattr(Taking, "wait_and_lease", slow)
    start_fetcher()
    stands(sent, parts)

    ids = parts.enqueue()
    eventually(lambda: gate.begun == ids)

    assert (parts.get(ids[0]).attempt, parts.get(ids[0]).fencing_token) == (1, 2)


def test_what_there_is_no_room_for_goes_back(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, sent: threading.Event
) -> None:
    fetcher = start_fetcher(concurrency=None)
    stands(sent, parts)
    parts.engine.pools.configure("default", slots=0)
    fetcher.reconsider()
    eventually(lambda: fetcher.pools[0].size == 0)

    ids = parts.enqueue()

    eventually(lambda: parts.get(ids[0]).fencing_token == 1 and parts.states(ids) == {"ready"})
    assert (gate.begun, parts.get(ids[0]).attempt) == ([], 0)
    eventually(lambda: parts.closed == [number for number, _ in parts.opened])


@pytest.mark.parametrize(
    ("bug", "story"),
    list(
        zip(
            STANDING_BUGS,
            [
                test_what_is_read_late_goes_back_before_it_begins,
                test_a_worker_that_is_held_takes_nothing_and_wakes_another,
                test_on_the_way_out_it_is_quiet_only_when_nothing_more_can_come,
            ],
            strict=True,
        )
    ),
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_mistake_around_standing_calls_is_caught(
    bug: PythonBug,
    story: Callable[..., None],
    parts: Parts,
    gate: Gate,
    start_fetcher: StartFetcher,
    sent: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, _, name = bug.target.rpartition(".")
    monkeypatch.setattr(getattr(import_module(module), name), bug.method, bug.broken)

    with pytest.raises(AssertionError):
        story(parts, gate, start_fetcher, sent, monkeypatch)
