"""Waits on the server for work, so that the fetcher can wait for everything at once in one place: its bell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from jobs.core.job import Route
from jobs.engine import Engine
from jobs.runtime.loop import ENVIRONMENT_ERRORS, Backoff, sleep

log = logging.getLogger("jobs.worker")


class Waiter(threading.Thread):
    """Blocks on the server while it is armed. One wait at a time; a wait that has begun cannot be changed."""

    def __init__(self, engine: Engine, on_news: Callable[[], object]) -> None:
        super().__init__(name="waiter", daemon=True)
        self._engine = engine
        self._on_news = on_news
        self._armed = threading.Semaphore(0)
        self._request: tuple[list[Route], float] | None = None
        self._backoff = Backoff()
        self.woken: set[Route] = set()  # added to here, emptied by the fetcher; both in one operation
        self.trouble: str | None = None

    @property
    def is_armed(self) -> bool:
        return self._request is not None

    def arm(self, routes: list[Route], timeout: float) -> None:
        """Wait for one of these to have work, at most ``timeout`` seconds; then say so."""
        self._request = (routes, timeout)
        self._armed.release()

    def run(self) -> None:
        while True:
            self._armed.acquire()
            if self._request is not None:
                self._wait(*self._request)
            self._request = None
            self._on_news()

    def _wait(self, routes: list[Route], timeout: float) -> None:
        try:
            route = self._engine.leases.wait_for_work(routes, timeout)
        except ENVIRONMENT_ERRORS as error:
            self.trouble = str(error)
            sleep(self._backoff.next_seconds())
        except Exception as error:
            self.trouble = str(error)
            log.exception("waiting for work failed")
            sleep(self._backoff.next_seconds())
        else:
            self.trouble = None
            self._backoff.reset()
            if route is not None:
                self.woken.add(route)
