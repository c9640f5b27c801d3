"""Leased jobs for tests that need no store."""

from __future__ import annotations

from typing import Any

from jobs.core.job import LeasedJob, Route


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
