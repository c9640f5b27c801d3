"""Keeps the lines of limits moving when nobody else does: places that dead workers left, starts that are due, jobs that
stand aside and in no line; and the shares of pools whose partitions have a cap between them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import inf
from time import monotonic

from jobs.core.job import Route
from jobs.core.limits import TypeLimits
from jobs.engine import Engine, limits_of
from jobs.registry import registry

BUSY_SECONDS = 1.0
"""While somebody waits for a limit."""

IDLE_SECONDS = 10.0

SWEEP_SECONDS = 120.0
"""Everything is looked through as often, whether somebody is known to wait or not."""

SURE_SECONDS = 0.5
"""What looks forgotten must still do so after as long: an end may be on its way, and whoever lost a lease shall have
stopped before its place is given to another."""


class Limiter:
    """Knows the limits that the code of this host declares; those of other code are left to its hosts."""

    name = "limiter"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen_at: dict[tuple[str, tuple[str, str]], float] = {}
        self._sweep_at = -inf
        self._busy = False

    @property
    def every(self) -> float:
        return (BUSY_SECONDS if self._busy else IDLE_SECONDS) * random.uniform(0.9, 1.1)

    def tick(self) -> dict[str, int]:
        waited_for = self._engine.limit_upkeep.waited_for() if _has_limits() else []
        self._forget_old_sights()
        is_due = monotonic() >= self._sweep_at
        sweep = is_due or bool(self._seen_at)  # what was seen once is looked at again
        freed = put_back = 0
        for limits in _limits_of(registry.all() if sweep else waited_for):
            self._engine.limits.turn(limits)
            freed += self._free_forgotten(limits)
            if sweep and limits.rate is not None:
                self._engine.limit_upkeep.tidy(limits)
        if sweep or waited_for:
            put_back = self._put_back_strays(self._engine.topology.partitions())
            self._share_caps()
        for type_name in waited_for:
            if limits_of(type_name) is not None:
                self._engine.limit_upkeep.forget_if_idle(type_name)
        if is_due:
            self._sweep_at = monotonic() + SWEEP_SECONDS  # only now: one that fails is due yet
        self._busy = bool(waited_for or self._seen_at)
        return {"freed": freed, "put_back": put_back}

    def _free_forgotten(self, limits: TypeLimits) -> int:
        places = [lease for lease in self._engine.limit_upkeep.forgotten(limits) if self._is_sure(limits.type, lease)]
        if places:
            self._engine.limits.give(limits, places)
        return len(places)

    def _put_back_strays(self, routes: Sequence[Route]) -> int:
        upkeep = self._engine.limit_upkeep
        if upkeep.none_stands_aside(routes):
            return 0
        put_back = 0
        for route in routes:
            strays = [job_id for job_id in upkeep.strays(route) if self._is_sure(str(route), (job_id, ""))]
            put_back += upkeep.put_back(route, strays) if strays else 0
        return put_back

    def _share_caps(self) -> None:
        for pool, settings in self._engine.pools.settings().items():
            cap = settings.max_running
            if cap is not None and self._engine.caps.is_misshared(pool, cap):
                self._engine.caps.set(pool, cap)

    def _is_sure(self, where: str, what: tuple[str, str]) -> bool:
        """Whether it was seen before, long enough ago."""
        seen_at = self._seen_at.setdefault((where, what), monotonic())
        return monotonic() - seen_at >= SURE_SECONDS

    def _forget_old_sights(self) -> None:
        oldest = monotonic() - 3 * IDLE_SECONDS
        self._seen_at = {what: at for what, at in self._seen_at.items() if at > oldest}


def _has_limits() -> bool:
    """Whether any type of this host has a limit: nobody could wait for one that it knows."""
    return any(job_type.limits is not None for job_type in registry.all().values())


def _limits_of(names: Iterable[str]) -> list[TypeLimits]:
    found = map(limits_of, names)
    return [limits for limits in found if limits is not None]
