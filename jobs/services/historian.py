"""Carries what was counted into totals and series, and drops what these keep no longer."""

from __future__ import annotations

import random
from time import monotonic

from jobs.core.job import Route
from jobs.engine import Engine

EVERY_SECONDS = 20.0
"""As long the live figures may grow before they are packed; whoever reads them folds them too."""

IDLE_SECONDS = 80.0
"""The same where nothing was counted lately."""


class Historian:
    name = "historian"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle_until: dict[Route, float] = {}

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.2)  # hosts that started together come one after the other

    def tick(self) -> dict[str, int]:
        return {"folded": sum(map(self._fold, self._engine.topology.partitions()))}

    def _fold(self, route: Route) -> int:
        if self._idle_until.get(route, 0.0) > monotonic():
            return 0
        folded = self._engine.upkeep.fold_figures(route)
        self._idle_until[route] = 0.0 if folded else monotonic() + IDLE_SECONDS
        return folded
