"""Claims on names that are unique over all pools: callers' job ids and unique keys.

One script cannot touch two slots, so a name is claimed first and the job created second. Whoever meets a claim whose
job never came to be makes sure that it never will (``void``) and takes the claim over by compare-and-set.

A claimant that finds its job voided may come back over the void that it has seen. It first writes that void into its
claim (``pool.1.0~<void>``): whoever voided it then fails to take over what is no longer the claim that was abandoned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.core.job import Route
from jobs.store.codec.ids import claimed_route
from jobs.store.connection import Store
from jobs.store.keys import HOLDER_BUCKETS, HolderKeys, holder_bucket, partition_keys


class Holders:
    """One kind of names: ``ids`` (value: the route) or ``unique`` (value: the job's id)."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind

    def take(self, name: str, value: str, *, expected: str = "") -> str:
        """Claims ``name`` for ``value`` if nobody (or ``expected``) holds it; returns who holds it now."""
        _, holder = self._run("holder_take", name, value=value, expected=expected)
        text: str = holder.decode()
        return text

    def holder(self, name: str) -> str:
        """Who holds the name; empty where nobody does."""
        key = HolderKeys(self._store.namespace, self._kind, name).holders
        return (self._store.read(lambda client: client.hget(key, name)) or b"").decode(errors="replace")

    def drop(self, name: str, expected: str) -> bool:
        """Gives ``name`` free if ``expected`` holds it."""
        return bool(self._run("holder_drop", name, expected=expected))

    def sweep(self, bucket: int) -> Iterator[tuple[str, str]]:
        """All names of one bucket (of ``HOLDER_BUCKETS``) with their holders."""
        key = holder_bucket(self._store.namespace, self._kind, bucket % HOLDER_BUCKETS)
        cursor = 0
        while True:
            cursor, found = self._store.read(lambda client: client.hscan(key, cursor, count=500))  # noqa: B023
            for name, holder in found.items():
                yield name.decode(), holder.decode()
            if cursor == 0:
                return

    def _run(self, script: str, name: str, **arguments: Any) -> Any:
        return self._store.run(script, HolderKeys(self._store.namespace, self._kind, name), name=name, **arguments)


def void_id(store: Store, route: Route, job_id: str, given_now: Any) -> bool:
    """Makes sure that an id never becomes a job under the claims that there are; False where it is one already."""
    answer = store.run("job_void", partition_keys(store.namespace, route), given_now=given_now, id=job_id)
    return bool(answer == b"voided")


def forget_id(store: Store, route: Route, job_id: str, given_now: Any) -> None:
    """Drops the directory entry of a caller's id whose job was removed or never came to be.

    Another producer may have claimed the id under an equal entry and be about to create its job: the id is voided
    before the entry goes, so that it claims again instead of making a job that nobody finds.
    """
    directory = Holders(store, "ids")
    holder = directory.holder(job_id)
    if claimed_route(holder) == route and void_id(store, route, job_id, given_now):
        directory.drop(job_id, holder)
