"""A thread that does one thing again and again, sleeps interruptibly in between, and outlives every error.

The only place that sleeps: everything that repeats or retries waits here.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from jobs.exceptions import OutcomeUnknown, StoreUnavailable

log = logging.getLogger("jobs.runtime")

ENVIRONMENT_ERRORS = (StoreUnavailable, OutcomeUnknown)
"""The server is away: no fault of ours and no traceback; wait and try again."""


def sleep(seconds: float) -> None:
    """Where nothing can happen that would be worth waking up for."""
    time.sleep(seconds)


class Backoff:
    """Growing waits between tries: doubling from ``first`` to ``cap`` seconds, each cut by up to half at random.

    The randomness keeps a hundred workers from returning to a restarted server in the same millisecond.
    """

    def __init__(self, first: float = 0.05, cap: float = 2.0) -> None:
        self._first = first
        self._cap = cap
        self._failures = 0

    def next_seconds(self) -> float:
        """One more failure: how long to wait before the next try."""
        ceiling = min(self._cap, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return ceiling * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked: the next failure starts from ``first`` again."""
        self._failures = 0


class Loop(threading.Thread):
    """Calls ``tick`` for ever in a daemon thread. ``tick`` answers the seconds until it wants to be called again.

    An error of the environment is waited out quietly, any other is logged with its traceback; both show in
    ``trouble`` until a tick succeeds. ``was_nudged``: whether the tick under way was asked for by a nudge.
    """

    def __init__(self, name: str, tick: Callable[[], float], *, backoff: Backoff | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self._tick = tick
        self._backoff = backoff or Backoff(first=0.1, cap=5.0)
        self._bell = threading.Event()
        self._stopping = False
        self.was_nudged = False
        self.trouble: str | None = None

    def run(self) -> None:
        while not self._stopping:
            self.was_nudged = self._bell.wait(self._guarded_tick())
            if self.was_nudged:  # a nudge that comes only now is for the tick after this one
                self._bell.clear()

    def nudge(self) -> None:
        """Tick now rather than when the current sleep is over."""
        self._bell.set()

    def stop(self, timeout: float | None = None) -> None:
        """No tick after the current one; waits for that up to ``timeout`` seconds when given."""
        self._stopping = True
        self._bell.set()
        if timeout is not None and self.is_alive():
            self.join(timeout)

    def _guarded_tick(self) -> float:
        try:
            pause = self._tick()
        except BaseException as error:  # SystemExit of somebody's hook or middleware would end the thread unheard
            self._report(error)
            return self._backoff.next_seconds()
        if self.trouble is not None:
            log.info("%s: works again", self.name)
        self.trouble = None
        self._backoff.reset()
        return pause

    def _report(self, error: BaseException) -> None:
        trouble = f"{type(error).__name__}: {error}"
        if trouble != self.trouble:  # once for each outage, not once for each try
            log.warning("%s: %s", self.name, error, exc_info=not isinstance(error, ENVIRONMENT_ERRORS))
        self.trouble = trouble
