"""Waits on the server for work of one pool, so that the fetcher can wait for everything at once: at its bell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from threading import get_ident

from jobs.core.job import Route
from jobs.engine import Engine
from jobs.runtime.loop import ENVIRONMENT_ERRORS, Backoff, sleep
from jobs.worker import database
from jobs.worker.standing import Standing, StandingCall
from jobs.worker.work import Work

log = logging.getLogger("jobs.worker")

YIELD_SECONDS = 0.0003
"""What comes after a hand-off waits for as long: the slot that was woken shall have the interpreter first."""


class Waiter:
    """Blocks on the server while it is armed, in the thread of that pool whose turn it is.

    A wait that has begun cannot be changed. So each pool has one: what it waits for is always that pool, and a pool
    that gets room again is never deaf because the wait began when it had none.

    The pool has one thread more than slots (leader and followers). The thread that waits may ``keep`` a job that it
    has found, and run it at once: nobody has to be woken for it. The turn is free from then on: whoever takes it waits
    as soon as the other has left.

    ``on_turn`` comes when a thread has the turn, and may arm the waiter at once: a short job shall not keep us from
    waiting for longer than it takes. ``on_woken`` takes up the work of a partition that has some, ``on_answer`` what a
    standing call has brought, and says whether a slot begins now. ``on_end`` comes after each wait, with the partitions
    of which it is not known whether they have any.
    """

    def __init__(
        self,
        engine: Engine,
        standing: Standing,
        *,
        on_turn: Callable[[], object],
        on_woken: Callable[[Route], object],
        on_answer: Callable[[], bool],
        on_end: Callable[[Sequence[Route]], object],
    ) -> None:
        self._engine = engine
        self._standing = standing
        self._on_turn = on_turn
        self._on_woken = on_woken
        self._on_answer = on_answer
        self._on_end = on_end
        self._disarmed = threading.Lock()
        self._disarmed.acquire()
        self._request: tuple[list[Route] | StandingCall, float] | None = None
        self._free = [True]  # the turn. To pop is to take, for one of several only
        self._serving = threading.Lock()
        self._thread: int | None = None
        self._kept: Work | None = None
        self._backoff = Backoff()

    @property
    def is_armed(self) -> bool:
        return self._request is not None

    def arm(self, request: list[Route] | StandingCall, timeout: float) -> None:
        """Wait for one of the partitions to have work, or for what the call brings, at most ``timeout`` seconds; then
        say so. Not while armed."""
        self._request = (request, timeout)
        self._disarmed.release()

    def take_turn(self) -> bool:
        """Whether the turn was free; it is the caller's now."""
        try:
            return self._free.pop()
        except IndexError:
            return False

    def keep(self, work: Work) -> bool:
        """Whether the calling thread has the turn, and runs this job itself."""
        if self._thread != get_ident() or self._kept is not None:
            return False
        self._kept = work
        self._free.append(True)  # at once: before anything else goes to the slots, somebody must have the turn
        return True

    def serve(self) -> Work:
        """Waits in the calling thread, whose turn it is, until it has kept a job. What its last job left open is closed
        when it grows stale."""
        with self._serving:  # whoever has kept a job is on the way out yet
            self._thread = get_ident()
            if not self.is_armed:
                self._on_turn()
            while True:
                patience = database.seconds_until_stale()
                if self._disarmed.acquire(timeout=-1 if patience is None else patience) and self._request is not None:
                    request, timeout = self._request
                    doubtful = self._wait(request, timeout if patience is None else min(timeout, patience))
                    self._request = None
                    self._on_end(doubtful)
                    if (work := self._kept) is not None:
                        self._thread = self._kept = None
                        return work
                database.close_stale()

    def _wait(self, request: list[Route] | StandingCall, timeout: float) -> list[Route]:
        try:
            if isinstance(request, StandingCall):
                self._standing.ask(request, timeout)
                if self._on_answer() and self._kept is None:
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
