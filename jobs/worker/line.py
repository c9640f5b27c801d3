"""The line of one pool in this process: its slots, who waits for its jobs, and how many it should hold ready."""

from __future__ import annotations

from time import monotonic

from jobs.core.job import Route
from jobs.worker.lookahead import Lookahead
from jobs.worker.slots import PoolSlots
from jobs.worker.standing import StandingCall
from jobs.worker.waiter import Waiter
from jobs.worker.work import Work

STALL_SECONDS = 0.25
"""Jobs that have waited here as long while no slot became free go back: somebody else may have one."""


class Line:
    """Belongs to the fetcher's thread."""

    def __init__(self, slots: PoolSlots, waiter: Waiter) -> None:
        self.slots = slots
        self.waiter = slots.waiter = waiter
        self._lookahead = Lookahead()
        self._ended = 0
        self._moved_at = monotonic()

    def resize(self, size: int) -> None:
        if size != self.slots.size:
            self.slots.resize(size)

    def hand(self, works: list[Work]) -> None:
        if not self.slots.waiting:
            self._moved_at = monotonic()  # these have not waited yet, however long the slots were idle before
        self.slots.hand(works)

    def wait(self, request: list[Route] | StandingCall, timeout: float) -> None:
        """See ``Waiter.arm``."""
        self.waiter.arm(request, timeout)
        self.slots.have_one_wait()

    def measure(self) -> None:
        self._lookahead.measure(self.slots.ended, self.slots.busy_seconds)
        self.slots.low_water = self._ahead // 2
        self.slots.gate.follow(self._lookahead.mean_seconds)

    @property
    def has_enough(self) -> bool:
        """More than half of what it should hold ready is still waiting: the next call shall be worth its while."""
        return self.slots.waiting > self.slots.low_water

    @property
    def room(self) -> int:
        return self.slots.size + self._ahead - self.slots.in_hand

    @property
    def _ahead(self) -> int:
        return self._lookahead.jobs(self.slots.size)

    def has_stalled(self) -> bool:
        """Jobs wait, and no slot has finished one for ``STALL_SECONDS``."""
        ended, now = self.slots.ended, monotonic()
        if ended != self._ended or not self.slots.waiting:
            self._ended, self._moved_at = ended, now
            return False
        if now - self._moved_at < STALL_SECONDS:
            return False
        self._lookahead.stalled(STALL_SECONDS)
        self._moved_at = now
        return True
