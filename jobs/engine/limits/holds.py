"""What holds a job back: the cap of its pool, or a limit of its type."""

from __future__ import annotations

from itertools import islice
from typing import Any, Literal, NamedTuple

from jobs.core.job import Job
from jobs.core.limits import TypeLimits
from jobs.engine.bundles import BUNDLE_MARK, leased_count, open_bundles
from jobs.engine.limits.records import LimitRecords, Waiter, limits_of
from jobs.store.codec.values import whole_number
from jobs.store.topology import Topology

SHOWN_HOLDERS = 5
"""Of those that have the places of a key, so many are named."""


class Hold(NamedTuple):
    """A limit that holds a job back now. ``limit``: 5 or "100/m", None where this process does not have the code of the
    type. ``holders``: up to 5 ids of jobs that have its places. ``free_in_seconds``: when a rate lets the next one
    start."""

    kind: Literal["max_running", "concurrency", "rate"]
    key: str
    limit: int | str | None
    holders: list[str]
    free_in_seconds: float | None = None


class Holds:
    """See the module."""

    def __init__(self, records: LimitRecords, topology: Topology) -> None:
        self._records = records
        self._topology = topology

    def of(self, job: Job) -> list[Hold]:
        """What holds a ready job back now, in the order in which it is decided; empty where nothing does."""
        holds: list[Hold] = []
        if (full := self._full_pool(job.pool)) is not None:
            holds.append(full)
        limits = limits_of(job.type)
        if (limits or job.throttled) and (waiter := self._records.waiters(job.type, [job.id])[0]) is not None:
            holds.append(self._held_by(job.type, limits, waiter))
        return holds

    def _held_by(self, type_name: str, limits: TypeLimits | None, waiter: Waiter) -> Hold:
        if waiter.line == "c":
            holders = self._holders_of(type_name, waiter.concurrency_key)
            return Hold("concurrency", waiter.concurrency_key, limits and (limits.concurrency or 0), holders)
        keys = self._records.keys(type_name)
        due = self._records.store.read(lambda client: client.zscore(keys.due, waiter.rate_key))
        seconds = max(0.0, (due - self._records.now_ms()) / 1000) if due is not None else 0.0
        return Hold("rate", waiter.rate_key, limits and str(limits.rate), [], round(seconds, 3))

    def _holders_of(self, type_name: str, key: str) -> list[str]:
        found: list[str] = []
        for field, holding in self._records.holders(type_name):
            if holding.partition("\n")[2] == key:
                found.append(field.rpartition("\n")[0])
            if len(found) == SHOWN_HOLDERS:
                break
        return found

    def _full_pool(self, pool: str) -> Hold | None:
        """The cap of a pool that has no room under it."""
        routes = self._topology.partitions(pool)
        keys = [self._records.partition(route) for route in routes]

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for of_route in keys:
                pipeline.hget(of_route.control, "max_running")
                pipeline.zcard(of_route.leased)
                pipeline.hvals(of_route.bundled)
                pipeline.zrange(of_route.leased, 0, SHOWN_HOLDERS - 1)
            return list(pipeline.execute())

        open_bundles(self._records.store, routes)
        replies = self._records.store.read(send) if keys else []
        shares = [whole_number(share) for share in replies[::4]]
        running = map(leased_count, replies[1::4], replies[2::4])
        if not shares or any(share is None or leased < share for share, leased in zip(shares, running, strict=True)):
            return None
        ids = (entry for entries in replies[3::4] for entry in entries if not entry.startswith(BUNDLE_MARK))
        holders = [job_id.decode() for job_id in islice(ids, SHOWN_HOLDERS)]
        return Hold("max_running", pool, sum(share or 0 for share in shares), holders)
