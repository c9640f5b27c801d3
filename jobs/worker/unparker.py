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

PORTION = 2_000
"""Jobs of a type that are put back in one partition at a time, while another host parks them again: it would do nothing
else if it were all of a long line each time."""

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
        self._portion = PORTION
        self._left = 0  # parked jobs that were left where they are, for the next time

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
        types = self._runnable()
        if types and self._unpark(types):
            return AGAIN_SECONDS
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

    def _unpark(self, types: frozenset[str]) -> bool:
        """Whether some are left for the next time. As long as none are parked again, each time takes more."""
        leases, routes = self._engine.leases, self._routes()
        left = 0
        if not leases.none_is_parked(routes):
            there = self._parked(types, routes)
            self._portion = 4 * self._portion if 0 < there <= self._left else PORTION
            left = there - sum(leases.unpark(route, types, limit=self._portion, wakes=False) for route in routes)
            self._not_before = monotonic() + AGAIN_SECONDS
        self._left = max(0, left)
        self._look()  # also where another host was quicker: it may have no room for them
        return self._left > 0

    def _parked(self, types: frozenset[str], routes: Sequence[Route]) -> int:
        counts = (self._engine.leases.parked(route) for route in routes)
        return sum(number for of_type in counts for name, number in of_type.items() if name in types)

    def _routes(self) -> list[Route]:
        topology = self._engine.topology
        if not self._pools:
            return topology.partitions()
        return [route for pool in self._pools for route in topology.partitions(pool)]
