"""What a thread rests at until something may have happened.

An ``Event`` does as much, in Python and with a lock made anew for each rest: one that has slept needs ten times as long
to ring it, while a job waits to begin.
"""

from __future__ import annotations

import threading


class Bell:
    """``ring`` from any thread, ``wait`` from one."""

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """Ends the rest that is under way, or the next one before it begins."""
        try:  # noqa: SIM105  # the other form takes longer than all the rest
            self._silent.release()
        except RuntimeError:  # it has been rung, and not been heard yet
            pass

    def wait(self, seconds: float) -> None:
        """Until it rings, at most as long. It is silent then."""
        self._silent.acquire(timeout=seconds)
