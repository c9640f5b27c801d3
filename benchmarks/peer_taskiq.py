"""Taskiq's side: its no-op task on both of its Redis brokers, and a sender. Runs in the peers' own environment only."""

from __future__ import annotations

import asyncio
import os
import sys

from taskiq import AsyncBroker  # type: ignore[import-not-found]
from taskiq_redis import ListQueueBroker, RedisStreamBroker  # type: ignore[import-not-found]

list_broker = ListQueueBroker(os.environ["PEER_URL"])
stream_broker = RedisStreamBroker(os.environ["PEER_URL"])


@list_broker.task(task_name="nothing_by_list")  # type: ignore[untyped-decorator]
async def nothing_by_list() -> None:
    """The no-op."""


@stream_broker.task(task_name="nothing_by_stream")  # type: ignore[untyped-decorator]
async def nothing_by_stream() -> None:
    """The no-op."""


async def send(kind: str, count: int) -> None:
    broker: AsyncBroker = list_broker if kind == "list" else stream_broker
    task = nothing_by_list if kind == "list" else nothing_by_stream
    await broker.startup()
    for _ in range(count):
        await task.kiq()
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(send(sys.argv[1], int(sys.argv[2])))
