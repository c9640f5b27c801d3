"""Middleware around one attempt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from itertools import permutations
from typing import Any

import pytest

from jobs.api import Context, current_context
from jobs.engine import Completion
from jobs.exceptions import JobCancelled
from jobs.worker import executor
from tests.worker.bench import Bench, error_of, failure

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


@pytest.fixture(autouse=True)
def _fresh() -> None:
    notes.clear()


@pytest.fixture
def use(settings: Any) -> Callable[..., None]:
    def use(*names: str) -> None:
        paths = [f"{__name__}.{name}" for name in names]
        settings.SCHEDULER = {**settings.SCHEDULER, "MIDDLEWARE": paths}

    return use


@pytest.mark.parametrize("names", [*permutations(["blocking", "awaiting"], 2)], ids="-".join)
def test_blocking_parts_run_in_the_slot_and_async_ones_on_the_loop(
    bench: Bench, use: Callable[..., None], names: tuple[str, ...]
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
    bench: Bench, use: Callable[..., None], names: list[str]
) -> None:
    use(*names)

    assert bench.run_function(lambda: [seen_outside.get(), current_context().id]).result == (
        b'["by middleware","job-1"]'
    )


@pytest.mark.parametrize("names", [["swallowing"], ["blocking", "swallowing"], ["swallowing", "blocking"]])
def test_middleware_may_answer_instead_of_an_error(bench: Bench, use: Callable[..., None], names: list[str]) -> None:
    def handler() -> None:
        raise LookupError("this")

    use(*names)
    assert bench.run_function(handler).result == b'"instead of this"'


@pytest.mark.parametrize("name", ["failing", "unbuildable", "nowhere"])
@pytest.mark.parametrize("outer", [[], ["awaiting"]])
def test_an_error_of_middleware_fails_the_attempt_and_nothing_else(
    bench: Bench, use: Callable[..., None], outer: list[str], name: str
) -> None:
    use(*outer, name)

    assert failure(bench.run_function(lambda: 1)).outcome == "retry"
    assert failure(bench.run_function(lambda: 1)).outcome == "retry"
    assert bench.slot.current is None


@pytest.mark.parametrize("error", [SystemExit(3), BaseException("base"), StopIteration()])
def test_no_exception_of_a_blocking_handler_under_async_middleware_is_lost(
    bench: Bench, use: Callable[..., None], error: BaseException
) -> None:
    def handler() -> None:
        raise error

    use("awaiting")
    settlement = bench.run_function(handler)
    assert error_of(settlement)["type"] in (type(error).__name__, "RuntimeError")


def test_a_stop_reaches_the_async_handler_through_blocking_middleware(bench: Bench, use: Callable[..., None]) -> None:
    async def handler() -> None:
        bench.slot.current.ask_to_stop(JobCancelled("enough"))
        await asyncio.sleep(10)

    use("awaiting", "blocking", "awaiting")
    assert failure(bench.run_function(handler)).outcome == "cancelled"


def test_a_stop_does_not_tear_middleware_from_the_blocking_handler_that_it_waits_for(
    bench: Bench, use: Callable[..., None]
) -> None:
    def handler(ctx: Context) -> str:
        bench.slot.current.ask_to_stop(JobCancelled("enough"))
        assert ctx.is_cancelled()
        return "tidied up"

    use("awaiting")
    assert bench.run_function(handler).result == b'"tidied up"'


def test_without_middleware_a_blocking_handler_has_no_chain_around_it(bench: Bench) -> None:
    assert bench.executor._call is executor.call_handler
