"""Calls ``SCHEDULER["ON_LONG_QUEUE"]`` for a pool whose jobs will wait longer than they should."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from jobs.engine import Engine, Pool, new_token

SHORTEST_SECONDS, LONGEST_SECONDS = 0.5, 5.0
"""Between two looks: half the threshold, within these."""

REMIND_SECONDS = 300.0
"""A queue that stays long is told of again after as long."""

HOLD_MS = 15_000
"""One host watches; for as long it may be silent before another does."""


class QueueWatch:
    """``hook`` is called with the pool when its predicted wait reaches ``threshold`` seconds, and again when it does so
    after it was shorter, or has stayed long. It raises nothing."""

    name = "queue watch"

    def __init__(self, engine: Engine, hook: Callable[[Pool], Any], threshold: float) -> None:
        self._engine = engine
        self._hook = hook
        self._threshold = threshold
        self._holder = new_token()
        self._told_at: dict[str, float] = {}

    @property
    def every(self) -> float:
        return min(max(self._threshold / 2, SHORTEST_SECONDS), LONGEST_SECONDS)

    def tick(self) -> dict[str, int]:
        if not self._engine.duties.take(self.name, self._holder, HOLD_MS):
            return {"long_queues": 0}
        told = 0
        for pool in self._engine.pools.all():
            wait = pool.predicted_wait_seconds
            if wait is None or wait < self._threshold:
                self._told_at.pop(pool.name, None)
            elif monotonic() >= self._told_at.get(pool.name, float("-inf")) + REMIND_SECONDS:
                self._told_at[pool.name] = monotonic()
                self._hook(pool)
                told += 1
        return {"long_queues": told}
