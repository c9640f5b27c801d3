"""How long whoever waits for the end of something pauses between two looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from jobs.core.duration import seconds
from jobs.exceptions import JobTimeout


class Pauses:
    """2 ms at first, then ever longer, half a second at most: a quick end is seen at once, and waiting long costs two
    reads a second. ``timeout``: seconds after which there is no next look; None: there always is."""

    SHORTEST, LONGEST, GROWTH = 0.002, 0.5, 1.4

    def __init__(self, timeout: float | timedelta | None) -> None:
        self._timeout = None if timeout is None else seconds(timeout, name="timeout")
        self._until = time.monotonic() + (self._timeout or 0.0)
        self._lengths = self._growing()

    def _growing(self) -> Iterator[float]:
        length = self.SHORTEST
        while True:
            yield length
            length = min(length * self.GROWTH, self.LONGEST)

    def next_or(self, out_of_time: Callable[[float], JobTimeout]) -> float:
        """The next one in seconds. Raises what ``out_of_time`` makes of the time-out where no time is left."""
        length = next(self._lengths)
        if self._timeout is None:
            return length
        left = self._until - time.monotonic()
        if left <= 0:
            raise out_of_time(self._timeout)
        return min(length, left)
