"""Tells ``SCHEDULER["ON_DEAD"]`` of each job that has died, whoever has buried it: at least once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.core.job import Job, Route
from jobs.engine import Engine, new_token

EVERY_SECONDS = 30.0
"""Whoever buries a job nudges the undertaker of its host; this finds what a host that died has left."""

SOON_SECONDS = 0.02
"""There is more to tell: of this very millisecond, or after a long round."""

LONGEST_ROUND = 100
"""Takings in one tick and partition, so that a flood of deaths in one does not silence the others."""


class Undertaker:
    """``hook`` is called with the job; it raises nothing."""

    name = "undertaker"

    def __init__(self, engine: Engine, hook: Callable[[Job], Any]) -> None:
        self._engine = engine
        self._hook = hook
        self._token = new_token()
        self._begun_ms: int | None = None  # server time of the first tick
        self._has_more = False

    @property
    def every(self) -> float:
        return SOON_SECONDS if self._has_more else EVERY_SECONDS

    def tick(self) -> dict[str, int]:
        self._has_more = False
        if self._begun_ms is None:
            self._begun_ms = self._engine.jobs.server_now_ms()
        # Afresh: the first death of a pool may come before anybody looked for pools again.
        routes = self._engine.topology.partitions(fresh=True)
        return {"mourned": sum(self._tell(route, self._begun_ms) for route in routes)}

    def _tell(self, route: Route, begun_ms: int) -> int:
        told = 0
        for _ in range(LONGEST_ROUND):
            deaths = self._engine.deaths.take(route, self._token, begun_ms)
            if deaths is None:
                return told
            if not deaths.ids:
                break
            for job in self._engine.jobs.get_many(deaths.ids):
                if job is not None:  # else it was discarded meanwhile
                    self._hook(job)
                    told += 1
            self._engine.deaths.settle(route, self._token, deaths)
        self._has_more = True
        return told
