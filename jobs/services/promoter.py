"""Makes due jobs ready in pools that nobody leases from, and puts parked jobs back in line when they may run.

Workers promote what is due with every lease; this is for pools whose workers are all busy or gone, so that counts and
ages stay true.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf
from time import monotonic

from jobs.core.job import Route
from jobs.engine import Engine, PromoteReply
from jobs.registry import registry

EVERY_SECONDS = 20.0

IDLE_SECONDS = 60.0
"""Where nothing comes due meanwhile. Jobs that are delayed by less, and enqueued after the look, are counted late."""

PARKED_SECONDS = 60.0
"""Parked jobs are looked for when what this host may run has changed, and now and then all the same: the news that
another host has parked some, which the unparker of the worker goes by, may have been lost."""

BATCH = 250


class Promoter:
    name = "promoter"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._runnable: frozenset[str] | None = None
        self._unpark_at = inf
        self._idle_until: dict[Route, float] = {}

    @property
    def every(self) -> float:
        now = monotonic()
        until_due = min((until - now for until in self._idle_until.values()), default=0.0)
        return max(EVERY_SECONDS, min(until_due, self._unpark_at - now)) * random.uniform(0.9, 1.1)

    def tick(self) -> dict[str, int]:
        routes = self._engine.topology.partitions()
        return {"promoted": self._promote_due(routes), "unparked": self._unpark_when_due(routes)}

    def _promote_due(self, routes: Sequence[Route]) -> int:
        due = [route for route in routes if self._idle_until.get(route, 0.0) <= monotonic()]
        if self._engine.leases.none_comes_due(due):
            self._idle_until.update(dict.fromkeys(due, monotonic() + IDLE_SECONDS))
            return 0
        return sum(map(self._promote, due))

    def _promote(self, route: Route) -> int:
        """All that is due in a partition."""
        promoted = 0
        while (reply := self._engine.leases.promote(route, BATCH)).promoted == BATCH:
            promoted += BATCH
        promoted += reply.promoted
        self._idle_until[route] = monotonic() + (0.0 if promoted else _idle_seconds(reply))
        return promoted

    def _unpark_when_due(self, routes: Sequence[Route]) -> int:
        """Where it is time to look: all that may run here."""
        runnable = frozenset(registry.all()) - self._engine.pauses.state().types_until_ms().keys()
        if runnable == self._runnable and monotonic() < self._unpark_at:
            return 0
        unparked = self._unpark(routes, runnable) if runnable else 0
        self._runnable, self._unpark_at = runnable, monotonic() + PARKED_SECONDS  # only now: what fails is due yet
        return unparked

    def _unpark(self, routes: Sequence[Route], types: frozenset[str]) -> int:
        if self._engine.leases.none_is_parked(routes):
            return 0
        return sum(self._engine.leases.unpark(route, types) for route in routes)


def _idle_seconds(reply: PromoteReply) -> float:
    """For how long nothing can come due but what is new."""
    if reply.next_due is None:
        return IDLE_SECONDS
    return min(IDLE_SECONDS, max(0.0, (reply.next_due - reply.now) / 1000))
