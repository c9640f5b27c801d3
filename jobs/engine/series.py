"""What a pool did lately: counters in 10-second buckets, kept for an hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from jobs.core.job import Route, iso, moment
from jobs.store.codec import whole_number
from jobs.store.connection import Store
from jobs.store.keys import partition_keys

BUCKET_SECONDS = 10
RATE_BUCKETS = 3
"""Whole buckets over which a rate is taken, besides the one that is still filling."""

COUNTERS = ("started", "succeeded", "failed", "dead", "crashed", "wait_ms", "run_ms")


class Series:
    def __init__(self, store: Store) -> None:
        self._store = store

    def throughput(self, routes: Sequence[Route], now_ms: int) -> dict[Route, float]:
        """Attempts ended per second over the last half minute, by partition."""
        current = now_ms // (BUCKET_SECONDS * 1000)
        buckets = range(current - RATE_BUCKETS, current + 1)
        fields = [f"{bucket}:{counter}" for bucket in buckets for counter in ("succeeded", "failed")]
        seconds = RATE_BUCKETS * BUCKET_SECONDS + (now_ms / 1000) % BUCKET_SECONDS

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                pipeline.hmget(partition_keys(self._store.namespace, route).series, fields)
            return list(pipeline.execute())

        replies = self._store.read(send) if routes else []
        return {
            route: sum(whole_number(value) or 0 for value in values) / seconds
            for route, values in zip(routes, replies, strict=True)
        }

    def history(self, routes: Sequence[Route], minutes: int = 60) -> list[dict[str, Any]]:
        """Sums over the partitions, oldest bucket first: ``at`` (ISO 8601) and one number per counter."""
        sums: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTERS, 0))
        for route in routes:
            key = partition_keys(self._store.namespace, route).series
            raw: Any = self._store.read(lambda client: client.hgetall(key))  # noqa: B023
            for field, value in raw.items():
                bucket, _, counter = field.decode().partition(":")
                if bucket.isdigit() and counter in COUNTERS:
                    sums[int(bucket)][counter] += whole_number(value) or 0
        newest = max(sums, default=0)
        oldest = newest - minutes * 60 // BUCKET_SECONDS
        return [
            {"at": iso(moment(bucket * BUCKET_SECONDS * 1000)), **sums[bucket]}
            for bucket in sorted(sums)
            if bucket > oldest
        ]
