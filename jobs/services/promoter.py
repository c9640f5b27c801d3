"""Makes due jobs ready in pools that nobody leases from, and puts parked jobs back in line when they may run.

Workers promote what is due with every lease; this is for pools whose workers are all busy or gone, so that counts and
ages stay true.
"""

from __future__ import annotations

import random

from jobs.engine import Engine
from jobs.registry import registry

EVERY_SECONDS = 10.0
BATCH = 1000


class Promoter:
    name = "promoter"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.9, 1.1)

    def tick(self) -> dict[str, int]:
        promoted = unparked = 0
        runnable = registry.all().keys() - self._engine.types.disabled()
        for route in self._engine.topology.partitions():
            while True:
                count = self._engine.leases.promote(route, BATCH).promoted
                promoted += count
                if count < BATCH:
                    break
            unparked += self._engine.leases.unpark(route, runnable)
        return {"promoted": promoted, "unparked": unparked}
