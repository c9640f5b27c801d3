"""Which pools exist, in which versions, with how many partitions.

A pool comes into being when it is first used, with one version of one partition. New jobs go to the newest version;
older versions are served until they are empty.
"""

from __future__ import annotations

import threading
import time
from typing import Any
from zlib import crc32

import msgspec

from jobs.core.job import Route
from jobs.core.options import check_pool
from jobs.exceptions import StoreNewer
from jobs.store.codec.ids import claimed_route
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import HolderKeys, SettingKeys
from jobs.store.pauses import tell_new_pool

FORMAT = 1
"""Of all that is stored. Whoever changes what is written so that older code would misread it counts it up: hosts and
producers of older code then take and make nothing any more, and say why."""

REFRESH_SECONDS = 1.0

TOLD_SECONDS = 60.0
"""For as long a view is good enough where somebody hears of new pools, and of a store that was emptied, and calls
``forget``."""

_FIRST_TOPOLOGY = b'{"1":1}'
_decode_versions = msgspec.json.Decoder(dict[str, int]).decode


def checked_pool(name: object) -> str:
    """The name itself; OptionInvalid where it cannot be a pool's."""
    return check_pool("pool", name)


class Topology:
    """A view of the pools that is at most a second old, or newer than the last ``forget`` where that ``is_told`` of
    each new pool. Thread-safe.

    Everything goes through here that takes jobs or makes some. So it raises StoreNewer where newer code has written
    what this one cannot read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = SettingKeys(store.namespace)
        self._lock = threading.Lock()
        self._versions: dict[str, dict[int, int]] = {}
        self._format = 0
        self._read_at = float("-inf")
        self.is_told = False

    def forget(self) -> None:
        """There is a new pool."""
        with self._lock:  # not in the midst of a reading that may have missed it
            self._read_at = float("-inf")

    def pools(self, *, fresh: bool = False) -> list[str]:
        """All pools that were ever used, by name; ``fresh``: as they are this very moment."""
        self._refresh(force=fresh)
        return sorted(self._versions)

    def partitions(self, pool: str | None = None, *, fresh: bool = False) -> list[Route]:
        """All partitions of all live versions, oldest version first; ``fresh``: as they are this very moment."""
        self._refresh(force=fresh)
        return [
            Route(name, version, partition)
            for name in ([pool] if pool is not None else sorted(self._versions))
            for version, count in sorted(self._versions.get(name, {}).items())
            for partition in range(count)
        ]

    def ensure(self, pool: str) -> None:
        """Creates the pool if it is new. OptionInvalid for an impossible name."""
        self._refresh()
        if pool in self._versions and self._format >= FORMAT:
            return
        checked_pool(pool)
        self._create(pool)
        self._refresh(force=True)

    def _create(self, pool: str) -> None:
        """Again, should something be paused or resumed between the two steps: the pool must be born into that."""
        while True:
            told = tell_new_pool(self._store, Route(pool, 1, 0))
            if told == self._store.run(
                "pool_create", self._keys, pool=pool, versions=_FIRST_TOPOLOGY, seen=told, written=FORMAT
            ):
                return

    def route_for(self, pool: str, job_id: str | None = None) -> Route:
        """Where a new job goes: in the newest version, by a stable hash of its id, else by chance."""
        while True:
            self.ensure(pool)
            if versions := self._versions.get(pool):
                break  # else the store was emptied meanwhile, and another thread has seen it
        version, count = max(versions.items())
        if count == 1:
            return Route(pool, version, 0)
        seed = crc32(job_id.encode()) if job_id is not None else time.monotonic_ns() // 1000
        return Route(pool, version, seed % count)

    def has(self, pool: str) -> bool:
        """Whether the pool was ever used. One that is not known is asked for: it may be a moment old."""
        self._refresh()
        if pool not in self._versions:
            self._refresh(force=True)
        return pool in self._versions

    def exists(self, route: Route) -> bool:
        """Whether there is such a partition."""
        return self.has(route.pool) and route.partition < self._versions.get(route.pool, {}).get(route.version, 0)

    def claimed_route(self, job_id: str) -> Route | None:
        """The route of a caller's id, by the directory; None where nobody claimed it."""
        keys = HolderKeys(self._store.namespace, "ids", job_id)
        raw = self._store.read(lambda client: client.hget(keys.holders, job_id))
        return claimed_route(raw.decode(errors="replace")) if raw else None

    def _refresh(self, *, force: bool = False) -> None:
        if not force and time.monotonic() - self._read_at < (TOLD_SECONDS if self.is_told else REFRESH_SECONDS):
            return
        with self._lock:
            read_at = time.monotonic()
            raw, written = self._store.read(self._ask)
            self._format = whole_number(written) or 0
            if self._format > FORMAT:
                raise StoreNewer(
                    f"What is stored has format {self._format}; this version reads up to {FORMAT}.",
                    fix="Newer code of this project uses the same store: deploy it here too.",
                )
            self._versions = {pool.decode(): _versions(stored) for pool, stored in raw.items()}
            self._read_at = read_at

    def _ask(self, client: Any) -> tuple[dict[bytes, bytes], bytes | None]:
        pipeline = client.pipeline(transaction=False)
        pipeline.hgetall(self._keys.topology)
        pipeline.get(self._keys.format)
        raw, written = pipeline.execute()
        return raw, written


def _versions(stored: bytes) -> dict[int, int]:
    try:
        versions = {int(version): count for version, count in _decode_versions(stored).items() if count > 0}
    except (msgspec.MsgspecError, ValueError):
        versions = {}
    return versions or {1: 1}
