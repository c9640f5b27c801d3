"""One attempt: from a leased job to what is reported about it. No store, no process, no slot thread."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import InterfaceError

from jobs import signals
from jobs.api import Cancelled, Context, Dead, Retry, Snooze, current_context, job
from jobs.conf import get_settings
from jobs.core.job import LeasedJob
from jobs.engine import Completion, Failure
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost
from jobs.registry import registry
from jobs.worker import cells, database, executor
from jobs.worker.batch import Batch, Marks
from jobs.worker.bridge import current_slot
from jobs.worker.cells import Cells
from jobs.worker.executor import Execution, Executor
from jobs.worker.herald import Herald
from jobs.worker.settlement import Drop, Release, Settlement
from jobs.worker.slots import Work
from tests.worker.leased import leased


class Bench:
    """An executor with everything around it that it needs, on a table."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        self.thread = thread
        fd = cells.create()
        self.cells = Cells(fd)
        os.close(fd)
        self.marks = Marks()
        self.said: list[tuple[Any, ...]] = []
        self.slot: Any = SimpleNamespace(cell=self.cells.new_cell(), current=None, inbox=None)
        self.herald = Herald()
        self.messenger: Any = SimpleNamespace(expect=lambda lease: None, read_parents=lambda lease: {})
        self.loop = loop
        self.lease_seconds = 10.0

    @cached_property
    def executor(self) -> Executor:
        """Made with the settings that the test has made by then. This thread is its slot's."""
        current_slot.set(self.slot)
        database.adopt_thread()
        reports: Any = SimpleNamespace(
            progress=lambda lease, *what: self.said.append((lease.id, *what)),
            line=lambda lease, *what, at_ms: self.said.append((lease.id, *what, at_ms)),
        )
        return Executor(get_settings(), self.loop, self.marks, reports, self.herald, self.messenger, None)

    def batch(self, leased_at: float | None = None) -> Batch:
        return Batch(
            1,
            "token-1",
            leased().route,
            1,
            leased_at=time.monotonic() if leased_at is None else leased_at,
            clock_offset=1_800_000_000_000 - time.monotonic() * 1000,
            lease_seconds=self.lease_seconds,
            cells=self.cells,
        )

    def run(self, lease: LeasedJob, batch: Batch | None = None) -> Settlement:
        work = Work(batch or self.batch(), lease, registry.get(lease.type))
        return self.executor.run(self.slot, work, time.monotonic())

    def run_function(self, function: Any, payload: dict[str, Any] | None = None, **facts: Any) -> Settlement:
        """As a job type of its own."""
        with registry.restored():
            job("bench.job")(function)
            return self.run(leased(type="bench.job", payload=json.dumps(payload or {}).encode(), **facts))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(database, "_in_use", set())  # what other tests left open in threads of their own
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with registry.restored():
        yield Bench(loop, thread)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def failure(settlement: Settlement) -> Failure:
    assert isinstance(settlement, Failure), settlement
    return settlement


def error_of(settlement: Settlement) -> dict[str, Any]:
    raw = failure(settlement).error
    assert raw is not None
    return json.loads(raw)


class TestSuccess:
    def test_the_handler_gets_its_arguments_and_its_result_is_reported(self, bench: Bench) -> None:
        settlement = bench.run_function(lambda a, b=3: {"sum": a + b}, {"a": 4})

        assert settlement == Completion("job-1", "token-1", "bench.job", settlement.started_at, b'{"sum":7}', None)
        assert abs(settlement.started_at - 1_800_000_000_000) < 1000

    def test_no_result_is_no_bytes(self, bench: Bench) -> None:
        assert bench.run_function(lambda: None).result is None

    def test_the_result_is_kept_as_long_as_the_job_says(self, bench: Bench) -> None:
        assert bench.run_function(lambda: 1, extras={"result_ttl": 90}).ttl_ms == 90_000

    def test_an_async_handler_runs_on_the_event_loop_and_knows_its_context(self, bench: Bench) -> None:
        async def handler(ctx: Context) -> list[Any]:
            await asyncio.sleep(0)
            return [threading.current_thread().name, current_context().id, ctx.id]

        here = threading.current_thread().name
        name, current, own = json.loads(bench.run_function(handler).result)
        assert name != here
        assert current == own == "job-1"

    def test_the_context_is_current_in_the_handler_and_in_no_other_place(self, bench: Bench) -> None:
        settlement = bench.run_function(lambda: current_context().id)
        assert settlement.result == b'"job-1"'
        with pytest.raises(LookupError):
            current_context()

    def test_the_deadline_is_the_start_plus_the_time_out(self, bench: Bench) -> None:
        before = datetime.now(UTC)
        settlement = bench.run_function(lambda ctx: ctx.deadline.timestamp(), timeout=30.0)
        deadline = datetime.fromtimestamp(json.loads(settlement.result), UTC)
        assert before + timedelta(seconds=30) <= deadline <= datetime.now(UTC) + timedelta(seconds=30)

    def test_a_job_without_time_out_has_no_deadline(self, bench: Bench) -> None:
        assert bench.run_function(lambda ctx: ctx.deadline, timeout=None).result is None

    def test_progress_goes_to_the_flusher_with_the_lease(self, bench: Bench) -> None:
        bench.run_function(lambda ctx: ctx.progress(3, 12, "a quarter"))
        assert bench.said == [("job-1", 3, 12, "a quarter")]

    def test_so_do_lines_of_the_log_with_the_time_of_the_server(self, bench: Bench) -> None:
        bench.run_function(lambda ctx: ctx.log.warning("%s of %s", 3, 12, page="a"))
        ((*line, at_ms),) = bench.said
        assert line == ["job-1", 30, "3 of 12", {"page": "a"}]
        assert abs(at_ms - 1_800_000_000_000) < 1000

    def test_a_result_beyond_the_limit_is_cut_and_says_so(self, bench: Bench) -> None:
        result = json.loads(bench.run_function(lambda: "x" * 300_000).result)
        assert result == {"cut": True, "bytes": 300_002, "preview": '"' + "x" * 999}


class TestFailure:
    def test_an_error_is_retried_after_the_backoff_with_its_traceback(self, bench: Bench) -> None:
        def handler() -> None:
            raise ValueError("no luck")

        settlement = failure(bench.run_function(handler, priority=7, backoff=("fixed", 2.0, 0.0)))

        assert (settlement.outcome, settlement.delay_ms, settlement.priority) == ("retry", 2000, 7)
        error = error_of(settlement)
        assert (error["type"], error["message"]) == ("ValueError", "no luck")
        assert "in handler" in error["traceback"]
        assert "jobs/worker/" not in error["traceback"]

    def test_the_last_retry_spent_is_death(self, bench: Bench) -> None:
        def handler() -> None:
            raise ValueError

        assert failure(bench.run_function(handler, errors=3, max_retries=3)).outcome == "dead"

    @pytest.mark.parametrize(
        ("error", "outcome", "delay_ms"),
        [
            (Retry(after=0.5), "retry", 500),
            (Dead("told so"), "dead", 0),
            (Snooze(1.5), "snooze", 1500),
            (Cancelled(), "cancelled", 0),
        ],
    )
    def test_a_handler_may_decide_itself(self, bench: Bench, error: Exception, outcome: str, delay_ms: int) -> None:
        def handler() -> None:
            raise error

        settlement = failure(bench.run_function(handler))
        assert (settlement.outcome, settlement.delay_ms) == (outcome, delay_ms)

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("base")])
    @pytest.mark.parametrize("is_async", [False, True])
    def test_no_exception_ends_more_than_the_attempt(self, bench: Bench, error: BaseException, is_async: bool) -> None:
        def handler() -> None:
            raise error

        async def async_handler() -> None:
            raise error

        settlement = bench.run_function(async_handler if is_async else handler)
        assert error_of(settlement)["type"] == type(error).__name__
        assert bench.run_function(lambda: 1).result == b"1"

    @pytest.mark.parametrize("look", [1, 2])  # before the handler, after it
    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_connection_that_cannot_be_closed_ends_the_attempt_and_nothing_more(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, is_async: bool, look: int
    ) -> None:
        async def async_handler() -> None: ...

        looks: list[int] = []

        def close_stale() -> None:
            looks.append(1)
            if len(looks) == look:
                raise InterfaceError("the connection is in no state to be closed")

        async def close_stale_of_async_handlers() -> None:
            close_stale()

        with monkeypatch.context() as patch:
            if is_async:
                patch.setattr(database, "close_stale_of_async_handlers", close_stale_of_async_handlers)
            else:
                patch.setattr(database, "close_stale", close_stale)
            settlement = bench.run_function(async_handler if is_async else lambda: None)

        assert error_of(settlement)["type"] == "InterfaceError"
        assert bench.slot.current is None
        with pytest.raises(LookupError):
            current_context()
        assert bench.run_function(lambda: 1).result == b"1"

    def test_arguments_that_do_not_fit_the_signature_of_today_are_death(self, bench: Bench) -> None:
        def handler(number: int) -> None: ...

        settlement = bench.run_function(handler, {"number": "seven"})
        assert failure(settlement).outcome == "dead"
        assert error_of(settlement)["type"] == "PayloadInvalid"

    @pytest.mark.parametrize("result", [threading.Lock(), float("nan"), {1: object()}, "half \ud800"])
    def test_a_result_that_cannot_be_stored_fails_for_good_since_the_work_is_done(
        self, bench: Bench, result: Any
    ) -> None:
        settlement = bench.run_function(lambda: result)
        assert failure(settlement).outcome == "dead"
        assert "did its work" in error_of(settlement)["message"]


class TestStopping:
    def test_a_job_whose_cancel_came_before_its_start_does_not_start(self, bench: Bench) -> None:
        bench.marks.cancelled.add(("job-1", "token-1"))
        ran: list[int] = []
        assert failure(bench.run_function(lambda: ran.append(1))).outcome == "cancelled"
        assert not ran

    def test_a_job_whose_lease_is_lost_or_over_does_not_start_and_is_not_reported(self, bench: Bench) -> None:
        ran: list[int] = []
        job("bench.job")(lambda: ran.append(1))
        lease = leased(type="bench.job")

        assert bench.run(lease, bench.batch(leased_at=time.monotonic() - 10.1)) == Drop("job-1")
        bench.marks.lost.add(("job-1", "token-1"))
        assert bench.run(lease) == Drop("job-1")
        assert not ran

    def test_a_job_that_comes_back_under_a_new_token_is_not_taken_for_its_lost_self(self, bench: Bench) -> None:
        bench.marks.lost.add(("job-1", "token-0"))
        assert isinstance(bench.run_function(lambda: 1), Completion)

    def test_a_result_that_comes_after_the_lease_is_not_reported(self, bench: Bench) -> None:
        bench.lease_seconds = 0.05
        assert bench.run_function(lambda: time.sleep(0.1)) == Drop("job-1")

    def test_a_renewal_in_the_meantime_keeps_the_result(self, bench: Bench) -> None:
        job("bench.job")(lambda: bench.cells.note_renewal(time.monotonic(), through_batch=1) or time.sleep(0.6))

        settlement = bench.run(leased(type="bench.job"), bench.batch(leased_at=time.monotonic() - 9.5))

        assert isinstance(settlement, Completion)

    def test_an_async_handler_is_interrupted_and_ends_as_what_stopped_it(self, bench: Bench) -> None:
        async def handler() -> None:
            bench.slot.current.ask_to_stop(JobCancelled("enough"))
            await asyncio.sleep(10)

        assert failure(bench.run_function(handler)).outcome == "cancelled"

    def test_an_async_handler_may_give_up_by_itself_and_is_retried(self, bench: Bench) -> None:
        async def handler() -> None:
            raise asyncio.CancelledError

        assert failure(bench.run_function(handler)).outcome == "retry"

    def test_a_handler_that_asks_hears_why_it_should_stop(self, bench: Bench) -> None:
        def handler(ctx: Context) -> None:
            bench.marks.lost.add((ctx.id, "token-1"))
            bench.slot.current.ask_to_stop(LeaseLost("gone"))
            assert ctx.is_cancelled()
            ctx.raise_if_cancelled()

        assert bench.run_function(handler) == Drop("job-1")

    @pytest.mark.parametrize("charged", [True, False])
    @pytest.mark.parametrize("is_async", [True, False])
    def test_a_handler_that_stops_because_its_worker_ends_goes_back(
        self, bench: Bench, charged: bool, is_async: bool
    ) -> None:
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

    def test_a_handler_that_is_done_when_its_worker_ends_has_done_it(self, bench: Bench) -> None:
        def handler(ctx: Context) -> int:
            bench.marks.abandoned[ctx.id, "token-1"] = True
            return 1

        assert isinstance(bench.run_function(handler), Completion)

    def test_a_handler_over_time_has_failed_also_when_its_worker_ends(self, bench: Bench) -> None:
        def handler(ctx: Context) -> None:
            bench.marks.abandoned[ctx.id, "token-1"] = False
            threading.Timer(0.05, lambda: bench.slot.current.stop(JobTimeout("too long"))).start()
            while True:
                pass

        assert error_of(bench.run_function(handler))["message"] == "too long"

    def test_a_sync_handler_is_interrupted_in_its_thread(self, bench: Bench) -> None:
        def handler() -> None:
            threading.Timer(0.05, lambda: bench.slot.current.stop(JobCancelled("enough"))).start()
            while True:
                pass

        assert failure(bench.run_function(handler)).outcome == "cancelled"

    def test_the_cell_names_the_job_while_it_runs_and_only_then(self, bench: Bench) -> None:
        seen = bench.run_function(lambda: [started.id for started in bench.cells.started()])
        assert seen.result == b'["job-1"]'
        assert bench.cells.started() == []
        assert bench.slot.current is None


# Middleware of a project, named by tests through their dotted paths.

notes: list[Any] = []


def blocking(call: Callable[[Context], Any]) -> Callable[[Context], Any]:
    def run(ctx: Context) -> Any:
        notes.append(("blocking", threading.current_thread().name))
        return call(ctx)

    return run


def awaiting(call: Callable[[Context], Any]) -> Callable[[Context], Any]:
    async def run(ctx: Context) -> Any:
        notes.append(("awaiting", threading.current_thread().name))
        seen_outside.set("by middleware")
        return await call(ctx)

    return run


def swallowing(call: Callable[[Context], Any]) -> Callable[[Context], Any]:
    async def run(ctx: Context) -> Any:
        try:
            return await call(ctx)
        except LookupError as error:
            return f"instead of {error}"

    return run


def failing(call: Callable[[Context], Any]) -> Callable[[Context], Any]:
    def run(ctx: Context) -> Any:
        raise ConnectionError("no tenant")

    return run


def unbuildable(call: Callable[[Context], Any]) -> Callable[[Context], Any]:
    raise ConnectionError("no settings service")


seen_outside: ContextVar[str] = ContextVar("seen_outside", default="nothing")


class TestMiddleware:
    @pytest.fixture(autouse=True)
    def _fresh(self) -> None:
        notes.clear()

    @pytest.fixture
    def use(self, settings: Any) -> Callable[..., None]:
        def use(*names: str) -> None:
            paths = [f"{__name__}.{name}" for name in names]
            settings.SCHEDULER = {**settings.SCHEDULER, "MIDDLEWARE": paths}

        return use

    @pytest.mark.parametrize("names", [*permutations(["blocking", "awaiting"], 2)], ids="-".join)
    def test_blocking_parts_run_in_the_slot_and_async_ones_on_the_loop(
        self, bench: Bench, use: Callable[..., None], names: tuple[str, ...]
    ) -> None:
        async def async_handler() -> None:
            notes.append(("handler", threading.current_thread().name))

        def handler() -> None:
            notes.append(("handler", threading.current_thread().name))

        use(*names)
        assert isinstance(bench.run_function(handler), Completion)
        assert isinstance(bench.run_function(async_handler), Completion)

        slot, loop = threading.current_thread().name, bench.thread.name
        where = {"blocking": slot, "awaiting": loop}
        parts = [(name, where[name]) for name in names]
        assert notes == [*parts, ("handler", slot), *parts, ("handler", loop)]

    @pytest.mark.parametrize("names", [["awaiting"], ["blocking", "awaiting"], ["awaiting", "blocking"]])
    def test_what_middleware_puts_into_context_variables_the_handler_finds(
        self, bench: Bench, use: Callable[..., None], names: list[str]
    ) -> None:
        use(*names)

        assert bench.run_function(lambda: [seen_outside.get(), current_context().id]).result == (
            b'["by middleware","job-1"]'
        )

    @pytest.mark.parametrize("names", [["swallowing"], ["blocking", "swallowing"], ["swallowing", "blocking"]])
    def test_middleware_may_answer_instead_of_an_error(
        self, bench: Bench, use: Callable[..., None], names: list[str]
    ) -> None:
        def handler() -> None:
            raise LookupError("this")

        use(*names)
        assert bench.run_function(handler).result == b'"instead of this"'

    @pytest.mark.parametrize("name", ["failing", "unbuildable", "nowhere"])
    @pytest.mark.parametrize("outer", [[], ["awaiting"]])
    def test_an_error_of_middleware_fails_the_attempt_and_nothing_else(
        self, bench: Bench, use: Callable[..., None], outer: list[str], name: str
    ) -> None:
        use(*outer, name)

        assert failure(bench.run_function(lambda: 1)).outcome == "retry"
        assert failure(bench.run_function(lambda: 1)).outcome == "retry"
        assert bench.slot.current is None

    @pytest.mark.parametrize("error", [SystemExit(3), BaseException("base"), StopIteration()])
    def test_no_exception_of_a_blocking_handler_under_async_middleware_is_lost(
        self, bench: Bench, use: Callable[..., None], error: BaseException
    ) -> None:
        def handler() -> None:
            raise error

        use("awaiting")
        settlement = bench.run_function(handler)
        assert error_of(settlement)["type"] in (type(error).__name__, "RuntimeError")

    def test_a_stop_reaches_the_async_handler_through_blocking_middleware(
        self, bench: Bench, use: Callable[..., None]
    ) -> None:
        async def handler() -> None:
            bench.slot.current.ask_to_stop(JobCancelled("enough"))
            await asyncio.sleep(10)

        use("awaiting", "blocking", "awaiting")
        assert failure(bench.run_function(handler)).outcome == "cancelled"

    def test_a_stop_does_not_tear_middleware_from_the_blocking_handler_that_it_waits_for(
        self, bench: Bench, use: Callable[..., None]
    ) -> None:
        def handler(ctx: Context) -> str:
            bench.slot.current.ask_to_stop(JobCancelled("enough"))
            assert ctx.is_cancelled()
            return "tidied up"

        use("awaiting")
        assert bench.run_function(handler).result == b'"tidied up"'

    def test_without_middleware_a_blocking_handler_has_no_chain_around_it(self, bench: Bench) -> None:
        assert bench.executor._call is executor.call_handler


class TestSignals:
    """What receivers are told. The store accepts every end here."""

    @pytest.fixture
    def told(self) -> Iterator[list[tuple[str, dict[str, Any]]]]:
        told: list[tuple[str, dict[str, Any]]] = []
        receivers = {}
        for name in ("job_started", "job_finished", "job_retrying", "job_died"):
            signal = getattr(signals, name)
            receivers[name] = lambda name=name, **facts: told.append((name, facts))
            signal.connect(receivers[name])
        yield told
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)

    def accept(self, bench: Bench, settlement: Settlement, answer: str | None = None) -> None:
        end = settlement if isinstance(settlement, Completion) else failure(settlement)
        states = {"retry": "retry_wait", "dead": "dead", "cancelled": "cancelled"}
        default = "ok" if isinstance(end, Completion) else states[end.outcome]
        bench.herald.hear([end], [answer or default])
        bench.herald.finish(5.0)

    def test_a_start_and_a_success(self, bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
        seen: list[str] = []
        self.accept(bench, bench.run_function(lambda: seen.extend(name for name, _ in told) or {"rows": 3}))

        assert seen == ["job_started"]
        (_, started), (name, finished) = told
        assert (name, finished["job_id"], finished["result"]) == ("job_finished", "job-1", {"rows": 3})
        assert started["sender"].name == finished["sender"].name == "bench.job"
        assert started["context"] is finished["context"]

    def test_a_failure_that_is_tried_again(self, bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
        def handler() -> None:
            raise LookupError("no luck")

        self.accept(bench, bench.run_function(handler, backoff=("fixed", 2.0, 0.0)))

        name, facts = told[-1]
        assert (name, str(facts["error"]), facts["delay"]) == ("job_retrying", "no luck", 2.0)

    def test_a_death(self, bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
        def handler() -> None:
            raise Dead("told so")

        self.accept(bench, bench.run_function(handler))

        assert (told[-1][0], str(told[-1][1]["error"])) == ("job_died", "told so")

    def test_a_payload_that_cannot_be_read_has_no_context(
        self, bench: Bench, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        def handler(number: int) -> None: ...

        self.accept(bench, bench.run_function(handler, {"number": "seven"}))

        ((name, facts),) = told
        assert (name, facts["context"]) == ("job_died", None)

    @pytest.mark.parametrize("answer", ["lost", "cancelled"])
    def test_an_end_that_the_store_does_not_accept_is_not_told(
        self, bench: Bench, told: list[tuple[str, dict[str, Any]]], answer: str
    ) -> None:
        self.accept(bench, bench.run_function(lambda: 1), answer)

        assert [name for name, _ in told] == ["job_started"]

    def test_a_receiver_that_raises_changes_nothing_and_is_logged(
        self, bench: Bench, told: list[tuple[str, dict[str, Any]]], caplog: pytest.LogCaptureFixture
    ) -> None:
        def receiver(**_: Any) -> None:
            raise ConnectionError("pager is down")

        for signal in (signals.job_started, signals.job_finished):
            signal.connect(receiver)
        try:
            self.accept(bench, bench.run_function(lambda: 1))
        finally:
            for signal in (signals.job_started, signals.job_finished):
                signal.disconnect(receiver)

        assert [name for name, _ in told] == ["job_started", "job_finished"]
        assert caplog.text.count("ConnectionError: pager is down") == 2  # by Django itself

    def test_while_nobody_listens_nothing_is_remembered(self, bench: Bench) -> None:
        bench.run_function(lambda: 1)

        assert not bench.herald._expected
        assert bench.herald._thread is None


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
