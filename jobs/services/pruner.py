"""Forgets what is over: ended jobs and runs past their retention, claims on names whose job is gone."""

from __future__ import annotations

import random

from jobs.engine import Engine

EVERY_SECONDS = 300.0
BUSY_SECONDS = 60.0
"""When there was something to prune, there will be more."""

CLAIM_BUCKETS = 256
"""Claims are looked through one bucket at a time, so that each tick stays short."""


class Pruner:
    name = "pruner"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._was_busy = False
        self._bucket = random.randrange(CLAIM_BUCKETS)  # hosts sweep different ones

    @property
    def every(self) -> float:
        return (BUSY_SECONDS if self._was_busy else EVERY_SECONDS) * random.uniform(0.8, 1.2)

    def tick(self) -> dict[str, int]:
        pruned = sum(self._engine.upkeep.prune_partition(route) for route in self._engine.topology.partitions())
        runs = self._prune_runs()
        self._was_busy = pruned + runs > 0
        claims = self._engine.upkeep.sweep_claims(self._bucket)
        self._bucket = (self._bucket + 1) % CLAIM_BUCKETS
        return {"pruned": pruned, "runs": runs, "claims": claims}

    def _prune_runs(self) -> int:
        workflows = self._engine.workflows
        past = workflows.past_retention()
        for run_id in past:
            workflows.remove(run_id)
        return len(past)
