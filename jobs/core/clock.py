"""Where the engine's "now" comes from."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time of a state change."""

    def now_ms(self) -> int | None:
        """Unix milliseconds, or None: let the server take its own time, inside the script that needs it."""


def uptime() -> float:
    """Seconds on a clock of this machine that never jumps, and goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ServerClock:
    """The time of the server that holds the jobs: the only clock that all workers share."""

    def now_ms(self) -> int | None:
        return None
