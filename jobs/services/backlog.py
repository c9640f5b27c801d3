"""Notes how many jobs wait in each pool, for the charts."""

from __future__ import annotations

import random

from jobs.engine import Engine

EVERY_SECONDS = 45.0
"""A note is due in each minute of the clock, and any host may write it; one that comes too often is refused."""


class BacklogNotes:
    name = "backlog"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.15)  # hosts that started together come one after the other

    def tick(self) -> dict[str, int]:
        return {"noted": int(self._engine.backlog.note())}
