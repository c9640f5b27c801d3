"""Which slots of a pool may take work: all of them, or one while the jobs are so short that more would be in the way.

Threads share one interpreter lock. One thread runs jobs of a few microseconds as fast as ten, but ten that are always
ready to run keep the lock from the two threads that fetch and report, and the server waits for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

SHORT_SECONDS = 0.0002
"""Jobs that take no longer, on average, go through one slot."""

PATIENCE_SECONDS = 0.005
"""While jobs wait and none ends for as long, the one slot is not enough: the gate opens for all."""


class Gate:
    """``waiting`` and ``ended`` count the pool's jobs. Open at first."""

    def __init__(self, waiting: Callable[[], int], ended: Callable[[], int]) -> None:
        self._waiting = waiting
        self._ended = ended
        self._open = threading.Event()
        self._open.set()
        self._first: object = None  # the slot that works while the gate is closed
        self._watchman: object = None  # the slot that watches whether the first gets on

    def follow(self, mean_seconds: float | None) -> None:
        """Open or close for jobs of this mean run time; None: not known yet."""
        is_open = mean_seconds is None or mean_seconds > SHORT_SECONDS
        if is_open != self._open.is_set():
            (self._open.set if is_open else self._open.clear)()

    def enter(self, slot: object, timeout: float | None) -> bool:
        """Waits until the slot may take work, at most ``timeout`` seconds; whether it may."""
        if self._first is slot or self._open.is_set():
            return True
        if self._first is None:
            self._first = slot
            self._watchman = None if self._watchman is slot else self._watchman
            return True
        if self._watchman is None:
            self._watchman = slot
        if self._watchman is slot:
            return self._watch()
        return self._open.wait(timeout)

    def leave(self, slot: object) -> None:
        """The slot retires, or waits at the server: others may take its place, all of which come in for that."""
        if self._first is slot:
            self._first = None
            self._open.set()
        if self._watchman is slot:
            self._watchman = None
            self._open.set()

    def _watch(self) -> bool:
        """Until the gate opens, by the watchman's own hand where the first slot is stuck, or nothing waits any more."""
        ended = self._ended()
        while self._waiting() and not self._open.wait(PATIENCE_SECONDS):
            before, ended = ended, self._ended()
            if ended == before and self._waiting():
                self._open.set()
        return True
