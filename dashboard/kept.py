"""Readings that may be a little old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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


class KeptOfEach(Generic[K, T]):
    """The same of several things, each under its name. Readings are large: those asked for last are kept, no others."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._lock = threading.Lock()
        self._kept: dict[K, Kept[T]] = {}  # the one asked for last stands last

    def read(self, name: K, read: Callable[[], T]) -> T:
        """See ``Kept``."""
        with self._lock:
            kept = self._kept.pop(name) if name in self._kept else Kept[T](self._seconds)
            self._kept[name] = kept
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return kept.read(read)

    def forget(self) -> None:
        """The next readings are new ones."""
        with self._lock:
            self._kept.clear()


class KeptWhile(Generic[T]):
    """The same for what is known to hold as long as something else does: then it is read anew only now and then."""

    def __init__(self, changing: float, unchanged: float) -> None:
        """Seconds between two readings while what they hang on changes, and while it stays the same."""
        self._kept: Kept[tuple[Hashable, T]] = Kept(changing)
        self._unchanged = unchanged
        self._until = 0.0

    def read(self, hangs_on: Hashable, read: Callable[[], T]) -> T:
        """The last reading while it was made of the same, else a new one: see ``Kept`` how often."""

        def anew() -> tuple[Hashable, T]:
            found = read()
            self._until = time.monotonic() + self._unchanged
            return hangs_on, found

        last = self._kept.last
        if last is None or last[0] != hangs_on or time.monotonic() > self._until:
            last = self._kept.read(anew)
        return last[1]

    def forget(self) -> None:
        """The next reading is a new one."""
        self._kept.forget()
