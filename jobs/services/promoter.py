"""Makes due jobs ready in pools that nobody leases from, and puts parked jobs back in line when they may run.

Workers promote what is due with every lease; this is for pools whose workers are all busy or gone, so that counts and
ages stay true.
"""

from __future__ import annotations

import random
from math import inf
from time import monotonic

from jobs.engine import Engine
from jobs.registry import registry

EVERY_SECONDS = 20.0

PARKED_SECONDS = 60.0
"""Parked jobs are looked for when what this host may run has changed, and now and then all the same: another host, that
may run less, may have parked some."""

AGAIN_SECONDS = 5.0
"""After some were put back in line: a host that may not run them may have been quicker, and parked them once more."""

BATCH = 1000


class Promoter:
    name = "promoter"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._runnable: frozenset[str] | None = None
        self._unpark_at = inf

    @property
    def every(self) -> float:
        seconds = min(EVERY_SECONDS, max(AGAIN_SECONDS, self._unpark_at - monotonic()))
        return seconds * random.uniform(0.9, 1.1)

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
        if unparked:
            self._unpark_at = monotonic() + AGAIN_SECONDS
        return {"promoted": promoted, "unparked": unparked}

    def _types_to_unpark(self) -> frozenset[str]:
        """What may run here, when it is time to look; else nothing."""
        runnable = frozenset(registry.all()) - self._engine.pauses.state().types_until_ms().keys()
        if runnable == self._runnable and monotonic() < self._unpark_at:
            return frozenset()
        self._runnable, self._unpark_at = runnable, monotonic() + PARKED_SECONDS
        return runnable
