"""The chain: order, errors, and sync and async middleware around sync and async calls."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed

from jobs.middleware import Around, AsgirefBridge, Outcome, chain

trace: list[str] = []
"""What ran, and whether inside an event loop."""

broken_builds: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    trace.clear()
    broken_builds.clear()


def note(who: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        trace.append(f"{who} blocks")
    else:
        trace.append(f"{who} awaits")


def sync_middleware(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(given: Any) -> Any:
        note("sync")
        return f"sync({call(given)})"

    return run


def async_middleware(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def run(given: Any) -> Any:
        note("async")
        return f"async({await call(given)})"

    return run


class AsyncInstance:
    """Async by its ``__call__``."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    async def __call__(self, given: Any) -> Any:
        return f"instance({await self._call(given)})"


def wrapping(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(call)
    def run(given: Any) -> Any:
        return f"wrapping({call(given)})"

    return run


class Both(Around):
    @contextmanager
    def around(self, given: Any) -> Iterator[Outcome]:
        note("both")
        outcome = Outcome()
        yield outcome
        outcome.result = f"both({outcome.result})"


def steps_aside(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    raise MiddlewareNotUsed


def returns_nothing(call: Callable[[Any], Any]) -> None:
    return None


def breaks_once(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not broken_builds:
        broken_builds.append("broke")
        raise ConnectionError("no settings service")
    return call


def handler(given: str) -> str:
    note("handler")
    return given


async def async_handler(given: str) -> str:
    note("handler")
    return given


def built(*names: str, innermost: Callable[[Any], Any] = handler) -> Callable[[Any], Any]:
    return chain([f"{__name__}.{name}" for name in names], innermost, AsgirefBridge())


class TestOrder:
    def test_the_first_is_the_outermost(self) -> None:
        assert built("sync_middleware", "wrapping")("x") == "sync(wrapping(x))"

    def test_without_middleware_there_is_no_chain(self) -> None:
        assert built() is handler

    def test_one_that_is_not_used_leaves_no_trace(self) -> None:
        assert built("sync_middleware", "steps_aside")("x") == "sync(x)"


class TestForms:
    @pytest.mark.parametrize("innermost", [handler, async_handler])
    @pytest.mark.parametrize("names", [*product(["sync_middleware", "async_middleware"], repeat=3)], ids="-".join)
    def test_every_mixture_gives_the_plain_result(
        self, names: tuple[str, ...], innermost: Callable[[Any], Any]
    ) -> None:
        outer, middle, inner = (name.removesuffix("_middleware") for name in names)

        assert built(*names, innermost=innermost)("x") == f"{outer}({middle}({inner}(x)))"

    @pytest.mark.parametrize(
        ("names", "innermost", "expected"),
        [
            (["sync_middleware"], handler, ["sync blocks", "handler blocks"]),
            (["sync_middleware"], async_handler, ["sync blocks", "handler awaits"]),
            (["async_middleware"], handler, ["async awaits", "handler blocks"]),
            (["async_middleware"], async_handler, ["async awaits", "handler awaits"]),
            (["Both"], handler, ["both blocks", "handler blocks"]),
            (["Both"], async_handler, ["both awaits", "handler awaits"]),
        ],
    )
    def test_each_part_runs_in_its_own_form_and_one_that_can_do_both_in_that_of_its_neighbour(
        self, names: list[str], innermost: Callable[[Any], Any], expected: list[str]
    ) -> None:
        built(*names, innermost=innermost)("x")

        assert trace == expected

    @pytest.mark.parametrize("innermost", [handler, async_handler])
    def test_an_object_with_an_async_call_and_a_wrapper_that_copies_attributes_are_taken_for_what_they_are(
        self, innermost: Callable[[Any], Any]
    ) -> None:
        assert built("AsyncInstance", "wrapping", innermost=innermost)("x") == "instance(wrapping(x))"

    def test_a_blocking_handler_under_async_middleware_stays_in_the_thread_of_the_caller(self) -> None:
        seen: list[threading.Thread] = []
        built("async_middleware", innermost=lambda given: seen.append(threading.current_thread()))("x")

        assert seen == [threading.current_thread()]

    def test_what_can_do_both_sees_in_which_form_its_neighbour_works(self) -> None:
        class Spy(Both):
            forms: list[bool] = []

            def __init__(self, call: Any) -> None:
                super().__init__(call)
                self.forms.append(iscoroutinefunction(call))

        globals()["Spy"] = Spy
        built("Spy", innermost=async_handler)("x")
        built("Spy", innermost=handler)("x")

        assert Spy.forms == [True, False]


class TestErrors:
    @pytest.mark.parametrize(
        "names", [["sync_middleware", "async_middleware"], ["async_middleware", "sync_middleware"]]
    )
    def test_what_the_handler_raises_goes_through_all_of_them(self, names: list[str]) -> None:
        def fails(given: Any) -> Any:
            raise LookupError(given)

        with pytest.raises(LookupError, match="x"):
            built(*names, innermost=fails)("x")

    def test_a_broken_build_fails_that_call_and_the_next_one_tries_again(self) -> None:
        call = built("breaks_once")
        with pytest.raises(ConnectionError):
            call("x")

        assert call("x") == "x"

    def test_one_that_returns_nothing_is_named(self) -> None:
        with pytest.raises(ImproperlyConfigured, match=r"returns_nothing returned None"):
            built("returns_nothing")("x")

    def test_a_wrong_path_is_an_error_of_the_call(self) -> None:
        with pytest.raises(ImportError, match="nowhere"):
            built("nowhere")("x")
