"""Waits on the server for work of one pool, so that the fetcher can wait for everything at once: at its bell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from jobs.core.job import Route
from jobs.engine import Engine
from jobs.runtime.loop import ENVIRONMENT_ERRORS, Backoff, sleep
from jobs.worker.standing import Standing, StandingCall

log = logging.getLogger("jobs.worker")

YIELD_SECONDS = 0.0003
"""What comes after a hand-off waits for as long: the slot that was woken shall have the interpreter first."""


class Waiter:
    """Blocks on the server, in a thread of its own, while it is armed.

    A wait that has begun cannot be changed. So each pool has one: what it waits for is always that pool, and a pool
    that gets room again is never deaf because the wait began when it had none.

    ``on_woken`` takes up the work of a partition that has some, ``on_answer`` what a standing call has brought, and
    says whether a slot begins now. ``on_end`` comes after each wait, with the partitions of which it is not known
    whether they have any.
    """

    def __init__(
        self,
        engine: Engine,
        standing: Standing,
        *,
        on_woken: Callable[[Route], object],
        on_answer: Callable[[], bool],
        on_end: Callable[[Sequence[Route]], object],
    ) -> None:
        self._engine = engine
        self._standing = standing
        self._on_woken = on_woken
        self._on_answer = on_answer
        self._on_end = on_end
        self._requests = threading.Semaphore(0)
        self._request: tuple[list[Route] | StandingCall, float] | None = None
        self._thread: threading.Thread | None = None
        self._backoff = Backoff()

    @property
    def is_armed(self) -> bool:
        return self._request is not None

    def arm(self, request: list[Route] | StandingCall, timeout: float) -> None:
        """Wait for one of the partitions to have work, or for what the call brings, at most ``timeout`` seconds; then
        say so. Not while armed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="waiter", daemon=True)
            self._thread.start()
        self._request = (request, timeout)
        self._requests.release()

    def _serve(self) -> None:
        while True:
            self._requests.acquire()
            doubtful = self._wait(*self._request) if self._request is not None else []
            self._request = None
            self._on_end(doubtful)

    def _wait(self, request: list[Route] | StandingCall, timeout: float) -> list[Route]:
        try:
            if isinstance(request, StandingCall):
                self._standing.ask(request, timeout)
                if self._on_answer():
                    sleep(YIELD_SECONDS)
            elif (route := self._engine.leases.wait_for_work(request, timeout)) is not None:
                self._on_woken(route)
        except Exception as error:
            if not isinstance(error, ENVIRONMENT_ERRORS):
                log.exception("waiting for work failed")
            sleep(self._backoff.next_seconds())
            # What came meanwhile has woken nobody: the fetcher shall look, and see what is wrong.
            return [request.route] if isinstance(request, StandingCall) else request
        self._backoff.reset()
        return []
