"""A chain of middleware around one innermost call, where each of them may be blocking or async.

A middleware takes the next callable and returns one. In which form it works shows in what it returns: a plain function
is given blocking calls and their results, a coroutine function is given what it can await. Where neighbours differ, a
bridge stands between them, so that nobody is ever handed a coroutine that it did not expect.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed, SynchronousOnlyOperation
from django.utils.module_loading import import_string

from jobs.core.wording import shown

Call = Callable[[Any], Any]
"""Blocking, or a coroutine function (see ``is_async``)."""

AsyncCall = Callable[[Any], Coroutine[Any, Any, Any]]

Middleware = Callable[[Call], Call]


class Bridge(Protocol):
    """How a chain crosses between threads and an event loop."""

    def to_sync(self, call: AsyncCall) -> Call:
        """A call that blocks until the async one has answered."""

    def to_async(self, call: Call) -> AsyncCall:
        """A call that can be awaited while the blocking one runs, in the thread from which the chain was entered."""


class AsgirefBridge:
    """Django's own way: for chains that are entered from anywhere but a worker."""

    def to_sync(self, call: AsyncCall) -> Call:
        crossing = async_to_sync(call)

        def blocking(given: Any) -> Any:
            if _is_inside_event_loop():
                raise SynchronousOnlyOperation(
                    "An async middleware cannot run for a blocking call inside an event loop: "
                    "await the call's async twin, such as aenqueue(), instead."
                )
            return crossing(given)

        return blocking

    def to_async(self, call: Call) -> AsyncCall:
        return sync_to_async(call, thread_sensitive=True)


def chain(paths: Sequence[str], innermost: Call, bridge: Bridge) -> Call:
    """A blocking call: ``innermost`` wrapped by the middleware at these dotted paths, the first of them outermost.

    Without middleware it is ``innermost`` itself. With some, the chain is built by the call that first needs it: an
    error while it is built is an error of that call, and the next one tries again.
    """
    if paths:
        return _Chain(paths, innermost, bridge)
    return bridge.to_sync(innermost) if is_async(innermost) else innermost


def is_async(call: object) -> bool:
    """Whether what the call answers must be awaited: a coroutine function, or an object with an async ``__call__``."""
    return iscoroutinefunction(call) or iscoroutinefunction(getattr(type(call), "__call__", None))  # noqa: B004


class _Chain:
    def __init__(self, paths: Sequence[str], innermost: Call, bridge: Bridge) -> None:
        self._paths = paths
        self._innermost = innermost
        self._bridge = bridge
        self._lock = threading.Lock()
        self._built: Call | None = None

    def __call__(self, given: Any) -> Any:
        return (self._built or self._build())(given)

    def _build(self) -> Call:
        with self._lock:
            if self._built is None:
                call = self._innermost
                for path in reversed(self._paths):
                    call = _wrapped(path, call, self._bridge)
                self._built = self._bridge.to_sync(call) if is_async(call) else call
            return self._built


def _wrapped(path: str, call: Call, bridge: Bridge) -> Call:
    middleware: Middleware = import_string(path)
    following = _AwaitedNext(call) if is_async(call) else _Next(call)
    try:
        built = middleware(following)
    except MiddlewareNotUsed:
        return call
    if not callable(built):
        raise ImproperlyConfigured(
            f"The middleware {path} returned {shown(built)}; it must return a callable that takes one argument."
        )
    if is_async(built) and not is_async(call):
        following.target = bridge.to_async(call)
    elif is_async(call) and not is_async(built):
        following.target = bridge.to_sync(call)
    return built


class _Next:
    """What a middleware is given to call: whether that blocks or is awaited is known once it has answered what it is.

    Whoever wants to know first, since it can do both (``Around``), may ask ``iscoroutinefunction``. The answer stands
    on the class: ``functools.wraps`` copies what stands on the instance, and would make a coroutine function of what is
    none.
    """

    __slots__ = ("target",)

    def __init__(self, target: Call) -> None:
        self.target = target

    def __call__(self, given: Any) -> Any:
        return self.target(given)


class _AwaitedNext(_Next):
    __slots__ = ()


markcoroutinefunction(_AwaitedNext)


def _is_inside_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
