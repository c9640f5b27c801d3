"""Where a process that was made for one job gets its work from: the message that named it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobs.core.job import Route
from jobs.registry import registry
from jobs.worker.batch import Batch
from jobs.worker.cells import Cells
from jobs.worker.messages import RunAlone
from jobs.worker.slots import PoolSlots
from jobs.worker.work import Work

BATCH = 1
"""The number under which the supervisor has opened the batch of this one job."""


class Errand:
    """Stands where the fetcher stands in other children: one job in one slot, and then nothing."""

    trouble: str | None = None
    is_idle = False
    is_quiet = True  # there is nothing to come

    def __init__(
        self,
        order: RunAlone,
        *,
        lease_seconds: float,
        cells: Cells,
        new_pool: Callable[[str, int, Callable[[], None]], PoolSlots],
        on_done: Callable[[], None],
    ) -> None:
        lease = order.lease
        batch = Batch(
            BATCH,
            lease.token,
            Route(*lease.route),
            1,
            leased_at=order.leased_at,
            clock_offset=order.clock_offset,
            lease_seconds=lease_seconds,
            cells=cells,
        )
        self._work = Work(batch, lease, registry.get(lease.type))
        self._pool = new_pool(lease.route.pool, 1, on_done)
        self.pools = [self._pool]

    @property
    def in_hand(self) -> int:
        return self._pool.in_hand

    def start(self) -> None:
        self._pool.hand([self._work])

    def reconsider(self) -> None:
        """Its one job has left the store's hands before whatever has changed."""

    def hold(self, is_held: bool) -> None:
        """Its one job has begun before the host was paused."""

    def look(self) -> None:
        """It has all that it will ever have."""

    def settled(self, routes: Iterable[Route]) -> None:
        """Its one job has ended."""

    def quiesce(self) -> None:
        """It has been from the start."""

    def hand_back(self) -> None:
        """It has begun already."""
