"""Leased jobs for tests that need no store."""

from __future__ import annotations

from time import monotonic
from typing import Any

from jobs.core.job import LeasedJob, Route
from jobs.registry import registry
from jobs.worker.batch import Batch
from jobs.worker.cells import Cells
from jobs.worker.work import Work


def leased(**facts: Any) -> LeasedJob:
    """A job of type ``test.echo`` in its first attempt, except for the given facts."""
    return LeasedJob(
        **{
            "id": "job-1",
            "route": Route("default", 1, 0),
            "token": "token-1",
            "type": "test.echo",
            "payload": b"{}",
            "attempt": 1,
            "errors": 0,
            "crashes": 0,
            "fencing_token": 1,
            "priority": 0,
            "max_retries": 3,
            "max_crashes": 3,
            "timeout": 30.0,
            "backoff": ("fixed", 1.0, 0.0),
            "extras": {},
            "leased_at": 1_800_000_000_000,
            **facts,
        }
    )


def work(cells: Cells, number: int) -> Work:
    """One on its way to a slot."""
    batch = Batch(
        1, "token", Route("default", 1, 0), 1, leased_at=monotonic(), clock_offset=0, lease_seconds=60, cells=cells
    )
    return Work(batch, leased(id=f"job-{number}"), registry.get("test.echo"))
