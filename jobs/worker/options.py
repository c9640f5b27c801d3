"""What ``runworkers`` was asked to do. Children inherit it by fork."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CANCEL_SECONDS = 1.0
"""A running job hears of its cancelling with the next renewal: within as long."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The command line of a worker host, checked. Times in seconds."""

    pools: tuple[str, ...] = ()  # empty = every pool, also those that appear later
    processes: int = 1
    concurrency: int | None = None  # slots per process and pool; None = what the pool says
    shared_slots: int | None = None  # all pools of a process share so many; None = each has its own
    weights: Mapping[str, int] = field(default_factory=dict)  # of pools that share; 1 where not named
    configured: Mapping[str, int] = field(default_factory=dict)  # what pools said at the start of the host
    burst: bool = False  # exit when nothing is ready, due or running
    max_in_flight: int | None = None  # most jobs one process may hold, running or not
    max_jobs: int | None = None  # a process is replaced after as many
    max_rss_bytes: int | None = None  # a process is replaced when it has grown beyond
    grace_seconds: float = 25.0
    lease_seconds: float = 10.0
    schedules: bool = True
    health_port: int | None = None
    reload: bool = False

    @property
    def told(self) -> str:
        """``critical and default with 2 processes``"""
        pools = " and ".join(self.pools) or "every pool"
        return f"{pools} with {self.processes} process{'' if self.processes == 1 else 'es'}"

    @property
    def lease_ms(self) -> int:
        return int(self.lease_seconds * 1000)

    @property
    def renewal_seconds(self) -> float:
        """A third of the lease, so that two renewals may fail; and no longer than a cancel may take to be heard."""
        return min(self.lease_seconds / 3, CANCEL_SECONDS)
