"""A page costs the same whatever the backlog: a bounded number of commands and queries, counted at the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.dashboard.seeding import Shop

PATHS = {
    "/dashboard/": 40,
    "/dashboard/jobs/": 40,
    "/dashboard/jobs/?state=ready&pool=default": 30,
    "/dashboard/dead/": 40,
    "/dashboard/pools/": 20,
    "/dashboard/workers/": 20,
    "/dashboard/schedules/": 30,
    "/dashboard/charts/?range=30d": 40,
    "/dashboard/snapshot/": 20,
}
"""Page → most round trips to the store that it may take."""


@pytest.fixture
def round_trips(shop: Shop) -> Callable[[Callable[[], Any]], int]:
    """How often the engine's client went to the server during a call; a pipeline counts once."""
    counted = 0
    send = redis.connection.AbstractConnection.send_packed_command

    def counting(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal counted
        counted += 1
        return send(self, command, *args, **kwargs)

    def count(call: Callable[[], Any]) -> int:
        nonlocal counted
        counted = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
            call()
        return counted

    return count


@pytest.mark.parametrize("path", PATHS)
def test_a_page_takes_as_many_round_trips_with_3000_jobs_as_with_100(
    path: str, viewer: Client, shop: Shop, round_trips: Callable[[Callable[[], Any]], int]
) -> None:
    shop.worker()
    shop.many(100)
    for _ in range(60):
        shop.dead(pool="billing")
    viewer.get(path)
    few = round_trips(lambda: viewer.get(path))
    shop.many(3_000)
    many = round_trips(lambda: viewer.get(path))

    assert few <= PATHS[path]
    assert many <= few + 2


@pytest.mark.parametrize("path", PATHS)
def test_a_page_takes_a_handful_of_queries(path: str, viewer: Client, shop: Shop) -> None:
    shop.many(100)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        viewer.get(path)

    assert len(queries) <= 6
