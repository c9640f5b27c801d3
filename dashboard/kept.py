"""Readings that may be a little old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """What is dear to read and may be a little old: read anew at most every so many seconds, and where a reading takes
    long so rarely that it takes a twentieth of the time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._reading: tuple[T] | None = None
        self._until = 0.0

    def read(self, read: Callable[[], T]) -> T:
        """The last reading while it is young enough, else a new one. Others wait for the one who reads."""
        with self._lock:
            began = time.monotonic()
            if self._reading is None or began > self._until:
                self._reading = (read(),)
                ended = time.monotonic()
                self._until = ended + max(self._seconds, 20 * (ended - began))
            return self._reading[0]

    @property
    def last(self) -> T | None:
        """The last reading, however old."""
        return self._reading[0] if self._reading else None

    def forget(self) -> None:
        """The next reading is a new one."""
        self._reading = None
