"""Numbers for people: read only, the same cost whatever the backlog."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from jobs.core.figures import Figures, merged
from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine.pools import Pool, Pools
from jobs.engine.series import Point, Series
from jobs.engine.workers import Workers
from jobs.store.connection import Store
from jobs.store.topology import Topology


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole system at one moment. ``version`` changes whenever anything in it does, save ages and rates."""

    server_time: datetime
    pools: list[Pool]
    states: dict[str, int]
    hosts: int
    workers: int
    version: str


class Stats:
    def __init__(self, store: Store, topology: Topology, pools: Pools, workers: Workers, series: Series) -> None:
        self._store = store
        self._topology = topology
        self._pools = pools
        self._workers = workers
        self._series = series

    def snapshot(self) -> Snapshot:
        with self._store.moment():
            return self._snapshot()

    def _snapshot(self) -> Snapshot:
        pools = self._pools.all()
        alive = [worker for worker in self._workers.all() if worker.alive]
        states = {state.value: sum(pool.count(state) for pool in pools) for state in JobState}
        hosts = sum(worker.is_host for worker in alive)
        facts: list[Any] = [
            (pool.name, pool.paused, pool.slots, pool.max_running, [pool.count(state) for state in JobState])
            for pool in pools
        ]
        facts += [(worker.id, worker.running, worker.paused) for worker in alive]
        version = hashlib.blake2b(msgspec.msgpack.encode(facts), digest_size=8).hexdigest()
        return Snapshot(
            server_time=moment(self._store.time_ms()),
            pools=pools,
            states=states,
            hosts=hosts,
            workers=len(alive) - hosts,
            version=version,
        )

    def types(self) -> dict[str, dict[str, int]]:
        """Job type → figure (see ``jobs.core.figures.COUNTED``) → total since ever, where it is not 0."""
        return {name: totals for name, figures in self.by_type().items() if (totals := figures.totals())}

    def by_type(self) -> dict[str, Figures]:
        """Job type → its totals, over all pools."""
        found: dict[str, Figures] = defaultdict(Figures)
        for types in self.by_pool_and_type().values():
            for type_name, figures in types.items():
                found[type_name].merge(figures)
        return dict(found)

    def by_pool_and_type(self) -> dict[str, dict[str, Figures]]:
        """Pool → job type → its totals. They only grow."""
        found: dict[str, dict[str, Figures]] = defaultdict(lambda: defaultdict(Figures))
        for route, types in self._series.totals(self._topology.partitions()).items():
            for type_name, figures in types.items():
                found[route.pool][type_name].merge(figures)
        return {pool: dict(types) for pool, types in found.items()}

    def series(
        self, pool: str | None = None, minutes: float = 60, *, type: str | None = None, step: int | None = None
    ) -> list[dict[str, Any]]:
        """What the pool (or all) did, oldest first, without the steps in which nothing happened.

        Each step has ``at``, ``seconds`` (its length), a number for each of ``jobs.core.figures.COUNTED``, the sums
        ``wait_ms`` and ``run_ms``, and ``wait`` and ``run``: count, mean, p50, p95 and p99 in seconds.
        """
        return [point.as_dict() for point in self.points(pool, minutes, type=type, step=step)]

    def points(
        self, pool: str | None = None, minutes: float = 60, *, type: str | None = None, step: int | None = None
    ) -> list[Point]:
        """The same as objects, for whoever adds them up."""
        return self._series.points(self._topology.partitions(pool), minutes, type_name=type, step=step)

    def points_of_pools(
        self, pools: Sequence[str], minutes: float = 60, *, step: int | None = None
    ) -> dict[str, list[Point]]:
        """The same for each of these pools."""
        groups = [self._topology.partitions(pool) for pool in pools]
        return dict(zip(pools, self._series.points_of(groups, minutes, step=step), strict=True))

    def durations(self, pool: str | None = None, minutes: float = 60, *, type: str | None = None) -> dict[str, Any]:
        """Waiting and running time over the last ``minutes``: ``wait`` and ``run`` as in ``series``."""
        figures = merged(point.figures for point in self.points(pool, minutes, type=type))
        return {"wait": figures.wait.as_dict(), "run": figures.run.as_dict()}
