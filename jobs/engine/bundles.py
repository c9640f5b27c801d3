"""Jobs that are leased together and share one entry in the line of leased jobs (lua/include/bundle_of.lua).

Whoever looks at that line opens the bundles first; whoever counts it adds what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jobs.core.job import Route
from jobs.engine.batches import batches
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.scripts import Call

BUNDLE_MARK = b"\n"
"""What an entry of the line begins with that is no job but a bundle; an id never does."""

OPENED_AT_ONCE = 20
"""In one trip; others are served between two of them."""


def open_bundles(store: Store, routes: Iterable[Route]) -> None:
    """Each job that is leased in these partitions now has an entry of its own afterwards. One question if all have,
    and mostly one trip more if not."""
    keys = [partition_keys(store.namespace, route) for route in routes]

    def find(client: Any) -> list[list[bytes]]:
        pipeline = client.pipeline(transaction=False)
        for of_route in keys:
            pipeline.hkeys(of_route.bundled)
        return list(pipeline.execute())

    tokens_of = store.read(find) if keys else []
    calls = [Call(of_route, {}, [token]) for of_route, tokens in zip(keys, tokens_of, strict=True) for token in tokens]
    for some in batches(calls, limit=OPENED_AT_ONCE):
        store.run_each("bundle_open", some)


def leased_count(entries: int, bundled: Sequence[bytes]) -> int:
    """How many jobs are leased: ``entries`` in the line, among them bundles with so many jobs each."""
    return entries + sum((whole_number(number) or 1) - 1 for number in bundled)
