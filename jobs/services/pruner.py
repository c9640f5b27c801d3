"""Forgets what is over: ended jobs past their retention, old series, claims on names whose job is gone."""

from __future__ import annotations

import random

from jobs.engine import Engine

EVERY_SECONDS = 60.0
CLAIM_BUCKETS = 256
"""Claims are looked through one bucket at a time, so that each tick stays short."""


class Pruner:
    name = "pruner"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bucket = random.randrange(CLAIM_BUCKETS)  # hosts sweep different ones

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.2)

    def tick(self) -> dict[str, int]:
        pruned = sum(self._engine.upkeep.prune_partition(route) for route in self._engine.topology.partitions())
        claims = self._engine.upkeep.sweep_claims(self._bucket)
        self._bucket = (self._bucket + 1) % CLAIM_BUCKETS
        return {"pruned": pruned, "claims": claims}
