"""A clock that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    """``Clock`` for tests: time passes only through ``advance``."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, seconds: float) -> int:
        """Moves on (or, with a negative number, back) and answers the new time."""
        self._now_ms += round(seconds * 1000)
        return self._now_ms
