"""What one lease call brought: jobs under one token, and until when the child may work on them."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from jobs.core.job import LeasedJob, Route
from jobs.worker.cells import Cells


class Batch:
    """The child's side of an open batch.

    ``leased_at`` is the monotonic time *before* the lease call was first sent: a slow reply makes us give the lease up
    too early, never too late. ``clock_offset``: the server's clock minus our monotonic one, in ms.
    """

    __slots__ = (
        "_cells",
        "_known_fence",
        "_lease_seconds",
        "clock_offset",
        "leased_at",
        "number",
        "remaining",
        "route",
        "token",
    )

    def __init__(
        self,
        number: int,
        token: str,
        route: Route,
        size: int,
        *,
        leased_at: float,
        clock_offset: float,
        lease_seconds: float,
        cells: Cells,
    ) -> None:
        self.number = number
        self.token = token
        self.route = route
        self.remaining = size  # jobs whose end the store does not know yet; written by the flusher only
        self.leased_at = leased_at
        self.clock_offset = clock_offset
        self._lease_seconds = lease_seconds
        self._cells = cells
        self._known_fence = leased_at + lease_seconds

    def is_over(self, moment: float) -> bool:
        """Whether nothing of this batch may be worked on or reported at this monotonic moment."""
        if moment < self._known_fence:
            return False
        self._known_fence = max(self.leased_at, self._cells.renewed_at(self.number)) + self._lease_seconds
        return moment >= self._known_fence

    def is_over_now(self) -> bool:
        """The same at this very moment."""
        return self.is_over(monotonic())

    def server_ms(self, moment: float) -> int:
        """A monotonic moment on the server's clock, in Unix milliseconds."""
        return int(moment * 1000 + self.clock_offset)


class Leases:
    """Single leases, each a (job id, token): the same job may come back under another token while its old attempt still
    runs. Added to from any thread, and forgotten by their batch.
    """

    def __init__(self) -> None:
        self._by_token: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_token)

    def __contains__(self, lease: tuple[str, str]) -> bool:
        job_id, token = lease
        return job_id in self._by_token.get(token, ())

    def add(self, lease: tuple[str, str]) -> None:
        job_id, token = lease
        self._by_token.setdefault(token, set()).add(job_id)

    def update(self, leases: Iterable[tuple[str, str]]) -> None:
        for lease in leases:
            self.add(lease)

    def forget(self, token: str) -> None:
        """All of one batch."""
        self._by_token.pop(token, None)

    def clear(self) -> None:
        self._by_token.clear()


class Marks:
    """What is to become of single leases: which are lost, whose job was asked to stop, and what was given up."""

    def __init__(self) -> None:
        self.lost = Leases()
        self.cancelled = Leases()
        self.abandoned: dict[tuple[str, str], bool] = {}  # what this worker gives up as it ends → whether it counts
        self._open: set[str] = set()

    def open(self, token: str) -> None:
        """A batch is in hand from now on."""
        self._open.add(token)

    def in_hand(self, leases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those whose batch is: what is said of the others comes too late, and nobody would forget it."""
        return [lease for lease in leases if lease[1] in self._open]

    def is_lost(self, lease: LeasedJob) -> bool:
        return bool(self.lost) and (lease.id, lease.token) in self.lost

    def is_cancelled(self, lease: LeasedJob) -> bool:
        return bool(self.cancelled) and (lease.id, lease.token) in self.cancelled

    def forget(self, token: str) -> None:
        """Every job of this batch has ended. A worker that is never idle would gather marks for ever."""
        self._open.discard(token)
        self.lost.forget(token)
        self.cancelled.forget(token)

    def forget_all(self) -> None:
        """Nothing is in hand, so nothing is meant any more: marks may come after the end of what they mark."""
        self.lost.clear()
        self.cancelled.clear()
