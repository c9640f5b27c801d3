"""Makes due jobs ready in pools that nobody leases from, and puts parked jobs back in line when they may run.

Workers promote what is due with every lease; this is for pools whose workers are all busy or gone, so that counts and
ages stay true.
"""

from __future__ import annotations

import random
from time import monotonic

from jobs.engine import Engine
from jobs.registry import registry

EVERY_SECONDS = 20.0

PARKED_SECONDS = 60.0
"""Parked jobs are looked for when what this host may run has changed, and now and then all the same: another host, that
may run less, may have parked some."""

BATCH = 1000


class Promoter:
    name = "promoter"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._runnable: frozenset[str] | None = None
        self._unpark_at = 0.0

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.9, 1.1)

    def tick(self) -> dict[str, int]:
        promoted = unparked = 0
        unpark = self._types_to_unpark()
        for route in self._engine.topology.partitions():
            while True:
                count = self._engine.leases.promote(route, BATCH).promoted
                promoted += count
                if count < BATCH:
                    break
            if unpark:
                unparked += self._engine.leases.unpark(route, unpark)
        return {"promoted": promoted, "unparked": unparked}

    def _types_to_unpark(self) -> frozenset[str]:
        """What may run here, when it is time to look; else nothing."""
        runnable = frozenset(registry.all()) - self._engine.types.disabled()
        if runnable == self._runnable and monotonic() < self._unpark_at:
            return frozenset()
        self._runnable, self._unpark_at = runnable, monotonic() + PARKED_SECONDS
        return runnable
