"""Cutting work into calls: no script may keep the others waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

BATCH = 1000
"""Most items of one call: Lua cannot unpack more than about 8,000 values."""

WRITE_BATCH = 250
"""Most items of a call that writes the record of each anew, at some 40 µs: a call takes about 10 ms."""

READ_BATCH = 25
"""Most jobs read by one call, each with payload and result."""

READS_AT_ONCE = 8
"""Calls of one round trip, each with as many jobs."""

BATCH_BYTES = 2_000_000
"""Bytes of payloads, results or errors after which a call takes no more."""


def batches(
    items: Iterable[Item], size_of: Callable[[Item], int] = lambda _: 0, limit: int = BATCH
) -> Iterator[list[Item]]:
    """The items in order, in lists of at most ``limit`` items and about ``BATCH_BYTES`` by ``size_of``."""
    batch: list[Item] = []
    size = 0
    for item in items:
        grown = size + size_of(item)
        if len(batch) == limit or (batch and grown > BATCH_BYTES):
            yield batch
            batch, grown = [], grown - size
        batch.append(item)
        size = grown
    if batch:
        yield batch
