"""Ends pauses whose time is over, and finishes telling of a pause what somebody began to tell and could not end.

Leases look at the end of a pause themselves, so nothing waits for this; but those who sleep in a paused pool are woken
by it, and jobs that were set aside stand in line again.
"""

from __future__ import annotations

from jobs.engine import Engine

EVERY_SECONDS = 60.0
"""Besides the ends of pauses, and the news of each change."""

MARGIN_SECONDS = 0.01
"""After the end of a pause, so that it is over by the server's clock too."""


class PauseKeeper:
    name = "pauses"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._told = 0
        self.every = EVERY_SECONDS

    def tick(self) -> dict[str, int]:
        stored = self._engine.pauses.stored()
        ended = self._engine.pauses.end_expired() if stored.has_any else []
        if ended:
            stored = self._engine.pauses.stored()
        if stored.version != self._told:
            self._engine.pauses.tell()
            self._told = stored.version
        now_ms = self._engine.pauses.now_ms() if stored.has_any else 0
        left = (pause.until_ms - now_ms for _, pause in stored.each())
        self.every = max(MARGIN_SECONDS, min([EVERY_SECONDS, *(ms / 1000 + MARGIN_SECONDS for ms in left)]))
        return {"ended": len(ended)}
