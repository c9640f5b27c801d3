from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.core.job import JobSpec, LeasedJob, Route
from jobs.engine import Engine, new_token

ROUTE = Route("default", 1, 0)


@pytest.fixture
def enqueue(engine: Engine) -> Callable[..., list[str]]:
    """``enqueue(3, delay_ms=500)`` → ids."""

    def enqueue(count: int = 1, **spec: Any) -> list[str]:
        made = engine.jobs.enqueue(JobSpec(**{"type": "test.echo", **spec}), [b"{}"] * count)
        return [enqueued.id for enqueued in made]

    return enqueue


@pytest.fixture
def lease(engine: Engine) -> Callable[..., list[LeasedJob]]:
    """``lease(3)`` → leased jobs, for ten seconds."""

    def lease(count: int = 1, lease_ms: int = 10_000) -> list[LeasedJob]:
        reply = engine.leases.lease(ROUTE, worker="w", token=new_token(), limit=count, lease_ms=lease_ms)
        return reply.jobs

    return lease
