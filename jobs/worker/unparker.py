"""Puts jobs back in line that another host set aside, because it does not know their type, where this one does.

It wakes no waiting worker by the store: that might be the one that set them aside. Each host that knows the type has
its own children look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic

from jobs.core.job import Route
from jobs.engine import Engine
from jobs.registry import registry

AGAIN_SECONDS = 1.0
"""At least as long between two times: while the slots here are busy, a host that does not know the type may take its
jobs and park them again and again."""

IDLE_SECONDS = 60.0
"""There is nothing to do until it is nudged."""

ANY_TYPE = ""
"""What a listener says that has heard nothing yet: jobs of any type may have been parked."""


class Unparker:
    """``hear`` from any thread, then nudge the loop. ``pools``: those that this host serves, empty for all. ``look``
    has its children look for jobs."""

    def __init__(self, engine: Engine, pools: Sequence[str], look: Callable[[], object]) -> None:
        self._engine = engine
        self._pools = pools
        self._look = look
        self._heard: SimpleQueue[str] = SimpleQueue()
        self._types: set[str] = set()  # heard of, and not seen to
        self._not_before = 0.0

    def hear(self, types: Iterable[str]) -> None:
        """Of these types jobs were parked somewhere, and none had been."""
        for type_name in types:
            self._heard.put(type_name)

    def tick(self) -> float:
        """Raises StoreUnavailable; what was heard is kept."""
        self._take_heard()
        if not self._types:
            return IDLE_SECONDS
        if (rest := self._not_before - monotonic()) > 0:
            return rest
        if types := self._runnable():
            self._unpark(types)
        self._types.clear()
        return IDLE_SECONDS

    def _take_heard(self) -> None:
        while True:
            try:
                self._types.add(self._heard.get_nowait())
            except Empty:
                return

    def _runnable(self) -> frozenset[str]:
        known = frozenset(registry.all())
        if ANY_TYPE not in self._types:
            known &= self._types
        return known - self._engine.pauses.state().types_until_ms().keys() if known else known

    def _unpark(self, types: frozenset[str]) -> None:
        leases, routes = self._engine.leases, self._routes()
        if not leases.none_is_parked(routes):
            for route in routes:
                leases.unpark(route, types, wakes=False)
            self._not_before = monotonic() + AGAIN_SECONDS
        self._look()  # also where another host was quicker: it may have no room for them

    def _routes(self) -> list[Route]:
        topology = self._engine.topology
        if not self._pools:
            return topology.partitions()
        return [route for pool in self._pools for route in topology.partitions(pool)]
