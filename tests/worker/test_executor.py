"""One attempt: what is reported of a success and of a failure."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import InterfaceError

from jobs.api import Cancelled, Context, Dead, Retry, Snooze, current_context, job
from jobs.engine import Completion
from jobs.registry import registry
from jobs.worker import database
from tests.worker.bench import Bench, error_of, failure
from tests.worker.leased import leased


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

    @pytest.mark.parametrize("option", ["retry_on", "dead_on"])
    @pytest.mark.parametrize(("errors", "outcome"), [(0, "retry"), (3, "dead")])
    def test_an_error_class_that_cannot_be_asked_what_it_means_ends_the_attempt_as_any_other_error(
        self, bench: Bench, option: str, errors: int, outcome: str
    ) -> None:
        class Unwilling(type):
            def __instancecheck__(cls, instance: object) -> bool:
                raise RuntimeError("not now")

        class Strange(Exception, metaclass=Unwilling): ...

        with registry.restored():

            @job("bench.job", max_retries=3, **{option: (Strange,)})
            def handler() -> None:
                raise ValueError("no luck")

            settlement = failure(bench.run(leased(type="bench.job", payload=b"{}", errors=errors, max_retries=3)))
        assert settlement.outcome == outcome
        assert error_of(settlement)["message"] == "no luck"

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
