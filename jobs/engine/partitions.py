"""What each partition of each pool holds: the shape of the store, and whether the work is spread over it evenly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from jobs.core.job import Route, moment
from jobs.engine.bundles import leased_count
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.topology import Topology

COUNTED = ("ready", "scheduled", "retry_wait", "blocked", "leased", "throttled", "dead")
LIVE = ("ready", "scheduled", "retry_wait", "blocked", "leased")
WAITING = ("scheduled", "retry_wait")


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition at one moment. ``ready``: with the jobs that are parked, and those that a limit holds back."""

    pool: str
    version: int
    partition: int
    ready: int
    scheduled: int
    retry_wait: int
    blocked: int
    leased: int
    throttled: int
    dead: int
    parked: int = 0

    @property
    def live(self) -> int:
        """Jobs that have not ended."""
        return sum(getattr(self, state) for state in LIVE)


class Partitions:
    """One round trip for all of them, or all of one pool, whatever they hold."""

    def __init__(self, store: Store, topology: Topology) -> None:
        self._store = store
        self._topology = topology

    def all(self, pool: str | None = None) -> list[Partition]:
        """Every partition of every live version, by pool, oldest version first; those of one pool, if it is named."""
        routes = self._topology.partitions(pool)
        replies = self._store.read(lambda client: self._count(client, routes)) if routes else []
        return [
            Partition(pool=route.pool, version=route.version, partition=route.partition, **counts)
            for route, counts in zip(routes, replies, strict=True)
        ]

    def next_due(self) -> dict[str, datetime]:
        """State (``scheduled``, ``retry_wait``) → when the first of its jobs is due; empty states are left out."""
        routes = self._topology.partitions()

        def first(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                keys = partition_keys(self._store.namespace, route)
                for state in WAITING:
                    pipeline.zrange(keys.index(state), 0, 0, withscores=True)
            return list(pipeline.execute())

        replies = self._store.read(first) if routes else []
        firsts = {
            state: [found[0][1] for found in replies[place :: len(WAITING)] if found]
            for place, state in enumerate(WAITING)
        }
        return {state: moment(int(min(scores))) for state, scores in firsts.items() if scores}

    def _count(self, client: Any, routes: Sequence[Route]) -> list[dict[str, int]]:
        pipeline = client.pipeline(transaction=False)
        for route in routes:
            keys = partition_keys(self._store.namespace, route)
            for state in COUNTED:
                pipeline.zcard(keys.index(state))
            pipeline.hvals(keys.bundled)
            pipeline.hvals(keys.parked)
        replies = iter(pipeline.execute())
        found = []
        for _ in routes:
            counts = {state: next(replies) for state in COUNTED}
            counts["leased"] = leased_count(counts["leased"], next(replies))
            counts["parked"] = sum(whole_number(number) or 0 for number in next(replies))
            counts["ready"] += counts["parked"] + counts["throttled"]
            found.append(counts)
        return found
