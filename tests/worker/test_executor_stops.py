"""One attempt that is cancelled, timed out, or loses its lease."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.api import Context, job
from jobs.engine import Completion, Failure
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost
from jobs.worker import database, executor
from jobs.worker.batch import Marks
from jobs.worker.executor import Execution
from jobs.worker.settlement import Drop, Release
from tests.worker.bench import Bench, error_of, failure
from tests.worker.leased import leased


def test_a_job_whose_cancel_came_before_its_start_does_not_start(bench: Bench) -> None:
    bench.marks.cancelled.add(("job-1", "token-1"))
    ran: list[int] = []
    assert failure(bench.run_function(lambda: ran.append(1))).outcome == "cancelled"
    assert not ran


def test_a_job_whose_lease_is_lost_or_over_does_not_start_and_is_not_reported(bench: Bench) -> None:
    ran: list[int] = []
    job("bench.job")(lambda: ran.append(1))
    lease = leased(type="bench.job")

    assert bench.run(lease, bench.batch(leased_at=time.monotonic() - 10.1)) == Drop("job-1")
    bench.marks.lost.add(("job-1", "token-1"))
    assert bench.run(lease) == Drop("job-1")
    assert not ran


def test_a_job_that_comes_back_under_a_new_token_is_not_taken_for_its_lost_self(bench: Bench) -> None:
    bench.marks.lost.add(("job-1", "token-0"))
    assert isinstance(bench.run_function(lambda: 1), Completion)


def test_what_is_known_of_a_batch_is_forgotten_with_it() -> None:
    marks, mine, other = Marks(), leased(), leased(token="token-2")
    for of_mark in (marks.lost, marks.cancelled):
        of_mark.update([(mine.id, mine.token), (other.id, other.token)])

    marks.forget(other.token)
    assert (marks.is_lost(other), marks.is_cancelled(other)) == (False, False)
    assert (marks.is_lost(mine), marks.is_cancelled(mine)) == (True, True)

    marks.forget(mine.token)
    assert not marks.lost
    assert not marks.cancelled


def test_what_is_said_of_a_batch_after_its_end_is_not_kept() -> None:
    marks = Marks()
    marks.open("token-1")
    said = [("job-1", "token-1"), ("job-2", "token-2")]
    assert marks.in_hand(said) == said[:1]

    marks.forget("token-1")
    assert marks.in_hand(said) == []


def test_a_result_that_comes_after_the_lease_is_not_reported(bench: Bench) -> None:
    bench.lease_seconds = 0.05
    assert bench.run_function(lambda: time.sleep(0.1)) == Drop("job-1")


def test_a_renewal_in_the_meantime_keeps_the_result(bench: Bench) -> None:
    job("bench.job")(lambda: bench.cells.note_renewal(time.monotonic(), through_batch=1) or time.sleep(1.1))

    settlement = bench.run(leased(type="bench.job"), bench.batch(leased_at=time.monotonic() - 9.0))

    assert isinstance(settlement, Completion)


def test_an_async_handler_is_interrupted_and_ends_as_what_stopped_it(bench: Bench) -> None:
    async def handler() -> None:
        bench.slot.current.ask_to_stop(JobCancelled("enough"))
        await asyncio.sleep(10)

    assert failure(bench.run_function(handler)).outcome == "cancelled"


def test_an_async_handler_may_give_up_by_itself_and_is_retried(bench: Bench) -> None:
    async def handler() -> None:
        raise asyncio.CancelledError

    assert failure(bench.run_function(handler)).outcome == "retry"


def test_a_handler_that_asks_hears_why_it_should_stop(bench: Bench) -> None:
    def handler(ctx: Context) -> None:
        bench.marks.lost.add((ctx.id, "token-1"))
        bench.slot.current.ask_to_stop(LeaseLost("gone"))
        assert ctx.is_cancelled()
        ctx.raise_if_cancelled()

    assert bench.run_function(handler) == Drop("job-1")


@pytest.mark.parametrize("charged", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_that_stops_because_its_worker_ends_goes_back(bench: Bench, charged: bool, is_async: bool) -> None:
    def give_up(ctx: Context) -> None:
        bench.marks.abandoned[ctx.id, "token-1"] = charged
        bench.slot.current.ask_to_stop(LeaseLost("the worker ends"))

    def handler(ctx: Context) -> None:
        give_up(ctx)
        raise RuntimeError("told to stop")

    async def async_handler(ctx: Context) -> None:
        give_up(ctx)
        await asyncio.sleep(10)

    assert bench.run_function(async_handler if is_async else handler) == Release(
        "job-1", "token-1", "bench.job", charged
    )


def test_a_handler_that_is_done_when_its_worker_ends_has_done_it(bench: Bench) -> None:
    def handler(ctx: Context) -> int:
        bench.marks.abandoned[ctx.id, "token-1"] = True
        return 1

    assert isinstance(bench.run_function(handler), Completion)


def test_a_handler_over_time_has_failed_also_when_its_worker_ends(bench: Bench) -> None:
    def handler(ctx: Context) -> None:
        bench.marks.abandoned[ctx.id, "token-1"] = False
        threading.Timer(0.05, lambda: bench.slot.current.stop(JobTimeout("too long"))).start()
        while True:
            pass

    assert error_of(bench.run_function(handler))["message"] == "too long"


def test_an_interrupted_handler_leaves_no_connection_to_the_next_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been in the middle of a query or of a commit."""
    dropped: list[int] = []
    monkeypatch.setattr(database, "drop_all", lambda: dropped.append(1))

    def handler() -> None:
        threading.Timer(0.05, lambda: bench.slot.current.stop(JobTimeout("too long"))).start()
        with suppress(JobTimeout):
            while True:
                pass

    assert isinstance(bench.run_function(handler), Completion)
    assert dropped == [1]
    assert isinstance(bench.run_function(lambda: None), Completion)
    assert dropped == [1], "nobody interrupted this one"


def test_a_sync_handler_is_interrupted_in_its_thread(bench: Bench) -> None:
    def handler() -> None:
        threading.Timer(0.05, lambda: bench.slot.current.stop(JobCancelled("enough"))).start()
        while True:
            pass

    assert failure(bench.run_function(handler)).outcome == "cancelled"


def test_the_cell_names_the_job_while_it_runs_and_only_then(bench: Bench) -> None:
    seen = bench.run_function(lambda: [started.id for started in bench.cells.started()])
    assert seen.result == b'["job-1"]'
    assert bench.cells.started() == []
    assert bench.slot.current is None


def test_it_still_does_where_the_end_of_the_attempt_cannot_be_told_so_that_the_job_is_charged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Failure:
        raise MemoryError

    def handler() -> None:
        raise ValueError

    monkeypatch.setattr(executor, "failure_of", fail)
    with pytest.raises(MemoryError):
        bench.run_function(handler)
    assert [started.id for started in bench.cells.started()] == ["job-1"]


class EndsMeanwhile(Execution):
    """Its slot takes the task away as soon as somebody has looked at it."""

    def __init__(self, task: Any) -> None:
        self._looks = iter([task, None])
        self.context = Context(leased(), {})
        self.loop = SimpleNamespace(call_soon_threadsafe=lambda call: call())  # type: ignore[assignment]

    task = property(lambda self: next(self._looks))  # type: ignore[assignment]


def test_a_handler_that_ends_while_it_is_asked_to_stop_takes_nobody_with_it() -> None:
    cancelled: list[bool] = []

    EndsMeanwhile(SimpleNamespace(cancel=lambda: cancelled.append(True))).ask_to_stop(LeaseLost())

    assert cancelled == [True]
