"""The common shape of middleware that does something before and after, in sync and async chains alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from jobs.middleware.chain import Call


class Outcome:
    """What the call answered; None until then, and where it raised."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: Any = None


class Around(ABC):
    """A subclass says in one context manager what happens around each call; it never has to cross between threads.

    ::

        class Timing(Around):
            @contextmanager
            def around(self, context):
                began = perf_counter()
                yield Outcome()
                statsd.timing(context.type, perf_counter() - began)
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._awaits = iscoroutinefunction(call)
        if self._awaits:
            markcoroutinefunction(self)

    @abstractmethod
    def around(self, given: Any) -> AbstractContextManager[Outcome]:
        """Yields an ``Outcome``, which then holds the call's answer. What the call raises, the ``yield`` raises."""

    def __call__(self, given: Any) -> Any:
        if self._awaits:
            return self._awaited(given)
        with self.around(given) as outcome:
            outcome.result = self._call(given)
        return outcome.result

    async def _awaited(self, given: Any) -> Any:
        with self.around(given) as outcome:
            outcome.result = await self._call(given)
        return outcome.result
