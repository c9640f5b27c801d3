"""How many jobs of a pool may wait, and how many run at once over all hosts: each partition has a share of the cap.

The script that leases counts the partition's own leases against its share, so a share holds through every crash. The
shares are changed while nothing starts, by what really runs: together they never allow more than the cap.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from jobs.core.job import Route
from jobs.exceptions import SchedulerError
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys, partition_keys
from jobs.store.topology import Topology

REFRESH_SECONDS = 1.0


class Pending:
    """How many jobs may wait in each pool: a view that is at most a second old. While the server is away it keeps what
    it knows. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = SettingKeys(store.namespace)
        self._lock = threading.Lock()
        self._limits: dict[str, int] = {}
        self._read_at = float("-inf")

    def of(self, pool: str) -> int | None:
        """None where any number may."""
        if monotonic() - self._read_at >= REFRESH_SECONDS and self._lock.acquire(blocking=False):
            try:
                self._limits = self._read()
            except SchedulerError:
                pass  # what comes next will say so
            else:
                self._read_at = monotonic()
            finally:
                self._lock.release()
        return self._limits.get(pool)

    def forget(self) -> None:
        """Something was changed: read it again."""
        self._read_at = float("-inf")

    def _read(self) -> dict[str, int]:
        raw: dict[bytes, bytes] = self._store.read(lambda client: client.hgetall(self._keys.pools))
        found: dict[str, int] = {}
        for field, stored in raw.items():
            pool, _, setting = field.decode().rpartition(":")
            if setting == "max_pending" and (limit := whole_number(stored)) is not None:
                found[pool] = limit
        return found


class PartitionLoad(NamedTuple):
    """``share``: how many may run, None = no cap."""

    running: int
    ready: int
    share: int | None


class Caps:
    """Raises StoreUnavailable or OutcomeUnknown."""

    def __init__(self, store: Store, topology: Topology) -> None:
        self._store = store
        self._topology = topology
        self._keys = SettingKeys(store.namespace)

    def set(self, pool: str, max_running: int | None) -> None:
        """From when this returns, no lease is given beyond ``max_running``; what runs goes on. May be repeated, by
        several at once: the last one counts. Repeated while it is in force, it moves idle shares to where jobs wait."""
        routes = self._topology.partitions(pool)
        version = self._next_version(pool)
        if max_running is None or len(routes) == 1:
            for route in routes:
                self._tell(route, max_running, version)
            return
        # For a moment nothing starts: so what runs is known, and nobody who began earlier can change a share any more.
        loads = [self._tell(route, 0, version) for route in routes]
        for route, share in zip(routes, shares(max_running, loads), strict=True):
            self._tell(route, share, version + 1)

    def load(self, route: Route) -> PartitionLoad:
        """What runs and waits in a partition, and its share."""
        return self._tell(route, None, 0)  # no version is as old: nothing is changed

    def is_misshared(self, pool: str, max_running: int) -> bool:
        """Whether a partition does not know the cap, or jobs wait in one whose share is used up while another has some
        to spare, or nobody has it."""
        loads = [self.load(route) for route in self._topology.partitions(pool)]
        if len(loads) == 1:
            return loads[0].share != max_running
        if any(load.share is None for load in loads):
            return True
        is_short = any(load.ready and load.running >= (load.share or 0) for load in loads)
        taken = sum(load.running if load.ready == 0 else max(load.running, load.share or 0) for load in loads)
        return is_short and taken < max_running

    def _next_version(self, pool: str) -> int:
        """Two numbers above all earlier ones: for lowering and for raising."""
        return int(self._store.call(lambda client: client.hincrby(self._keys.caps, pool, 2)))

    def _tell(self, route: Route, share: int | None, version: int) -> PartitionLoad:
        running, ready, current = self._store.run(
            "pool_cap",
            partition_keys(self._store.namespace, route),
            share="" if share is None else share,
            version=version,
        )
        return PartitionLoad(running, ready, current if isinstance(current, int) else None)


def shares(max_running: int, loads: Sequence[PartitionLoad]) -> list[int]:
    """The cap divided: what runs keeps its places, the rest goes evenly to where there is use for it, then to all."""
    given = [load.running for load in loads]
    left = max(0, max_running - sum(given))
    for claimants in ([load.ready for load in loads], [left] * len(loads)):
        while left and (hungry := [position for position, want in enumerate(claimants) if want > 0]):
            portion = max(1, left // len(hungry))
            for position in hungry:
                more = min(portion, claimants[position], left)
                given[position] += more
                claimants[position] -= more
                left -= more
    return given
