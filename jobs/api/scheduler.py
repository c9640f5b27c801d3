"""The whole system at a glance."""

from __future__ import annotations

from typing import Any

from jobs.api.asynchronous import twin
from jobs.core.job import iso
from jobs.engine import get_engine


def status() -> dict[str, Any]:
    """The JSON of ``scheduler status``: who holds the system, hosts, workers, server time, jobs by state, pools."""
    snapshot = get_engine().stats.snapshot()
    return {
        "paused": None,
        "hosts": snapshot.hosts,
        "workers": snapshot.workers,
        "server_time": iso(snapshot.server_time),
        "states": snapshot.states,
        "pools": [pool.as_dict() for pool in snapshot.pools],
    }


astatus = twin(status)
