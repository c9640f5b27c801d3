"""Numbers for people: read only, the same cost whatever the backlog."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime
from typing import Any

import msgspec

from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine.pools import Pool, Pools
from jobs.engine.series import Series
from jobs.engine.workers import Workers
from jobs.store.codec import whole_number
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
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
    def __init__(self, store: Store, topology: Topology, pools: Pools, workers: Workers) -> None:
        self._store = store
        self._topology = topology
        self._pools = pools
        self._workers = workers
        self._series = Series(store)

    def snapshot(self) -> Snapshot:
        pools = self._pools.all()
        alive = [worker for worker in self._workers.all() if worker.alive]
        states = {state.value: sum(pool.count(state) for pool in pools) for state in JobState}
        hosts = sum(worker.is_host for worker in alive)
        facts = [
            (pool.name, pool.paused is not None, pool.slots, [pool.count(state) for state in JobState])
            for pool in pools
        ]
        facts.append(("", False, len(alive), [sum(map(sum, self._counters().values()))]))
        facts += [(worker.id, worker.alive, worker.running, []) for worker in alive]
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
        """Job type → counter (enqueued, succeeded, failed, retried, dead, cancelled, crashed, resubmitted) → total."""
        totals: dict[str, dict[str, int]] = defaultdict(dict)
        for (counter, type_name), values in self._counters().items():
            totals[type_name][counter] = sum(values)
        return dict(totals)

    def series(self, pool: str | None = None, minutes: int = 60) -> list[dict[str, Any]]:
        """What the pool (or all) did, in 10-second buckets, oldest first; see ``jobs.engine.series``."""
        return self._series.history(self._topology.partitions(pool), minutes)

    def _counters(self) -> dict[tuple[str, str], list[int]]:
        routes = self._topology.partitions()

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                pipeline.hgetall(partition_keys(self._store.namespace, route).counters)
            return list(pipeline.execute())

        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for raw in self._store.read(send) if routes else []:
            for field, value in raw.items():
                counter, _, type_name = field.decode().partition(":")
                found[counter, type_name].append(whole_number(value) or 0)
        return found
