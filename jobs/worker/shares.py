"""Whose turn it is when pools share the slots of a process: each gets its share of the time that slots work.

The pool that has used the least time, measured by its weight, comes first. So none starves: however long the jobs of
the others are, the next slot that becomes free is its own as long as it is behind. A pool that had nothing to do saves
up nothing: it comes back where the others are now.
"""

from __future__ import annotations

from collections.abc import Mapping


class Shares:
    """Belongs to one thread. ``weights``: of the pools that are named; of all others 1."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._lifted: dict[str, float] = {}  # what idle pools are credited with, so that they save up nothing
        self._wanted: frozenset[str] = frozenset()
        self._least = 0.0

    def turns(self, used: Mapping[str, float], free: int) -> list[tuple[str, int]]:
        """Pools in the order of their turns, and how many of the ``free`` slots each may take now, at least one.

        ``used``: seconds of work in slots so far, for each pool that wants one.
        """
        staying = [self._progress(pool, used) for pool in used if pool in self._wanted]
        self._least = min(staying, default=self._least)
        for pool in used.keys() - self._wanted:
            self._lifted[pool] = self._lifted.get(pool, 0.0) + max(0.0, self._least - self._progress(pool, used))
        self._wanted = frozenset(used)
        self._least = min((self._progress(pool, used) for pool in used), default=self._least)
        total = sum(self._weight(pool) for pool in used)
        order = sorted(used, key=lambda pool: (self._progress(pool, used), -self._weight(pool), pool))
        return [(pool, max(1, free * self._weight(pool) // total)) for pool in order]

    def _progress(self, pool: str, used: Mapping[str, float]) -> float:
        return used[pool] / self._weight(pool) + self._lifted.get(pool, 0.0)

    def _weight(self, pool: str) -> int:
        return self._weights.get(pool, 1)
