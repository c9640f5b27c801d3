"""Notes how many jobs wait in each pool, for the charts."""

from __future__ import annotations

import random

from jobs.engine import Engine

EVERY_SECONDS = 25.0
"""A note is due once a minute, and any host may write it; what comes too often is refused by the script."""


class BacklogNotes:
    name = "backlog"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.2)  # hosts that started together come one after the other

    def tick(self) -> dict[str, int]:
        return {"noted": int(self._engine.backlog.note())}
