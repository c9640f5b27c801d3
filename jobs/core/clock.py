"""Where the engine's "now" comes from."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time of a state change."""

    def now_ms(self) -> int | None:
        """Unix milliseconds, or None: let the server take its own time, inside the script that needs it."""


class ServerClock:
    """The time of the server that holds the jobs: the only clock that all workers share."""

    def now_ms(self) -> int | None:
        return None
