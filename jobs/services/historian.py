"""Carries what was counted into totals and series, and drops what these keep no longer."""

from __future__ import annotations

import random

from jobs.engine import Engine

EVERY_SECONDS = 20.0
"""As long the live figures may grow before they are packed; whoever reads them folds them too."""


class Historian:
    name = "historian"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.2)  # hosts that started together come one after the other

    def tick(self) -> dict[str, int]:
        return {"folded": sum(self._engine.upkeep.fold_figures(route) for route in self._engine.topology.partitions())}
