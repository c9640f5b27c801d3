"""Which partitions need not be asked for jobs now, until when, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from time import monotonic

from jobs.core.job import Route
from jobs.engine import LeaseReply

FULL_SECONDS = 0.5
"""Where as many run as may run in the pool: an end in another process is noticed within as long, an own one at once."""

DUE_MARGIN_SECONDS = 0.0005
"""Added to a due time, so that the wake-up is not a clock tick too early and for nothing."""

TOGETHER = 0.5
"""Of a whole nap: partitions without jobs whose nap ends as soon are looked at with the one whose nap is over."""


class Naps:
    """Belongs to the fetcher's thread; others may look. ``longest``: seconds after which a partition that was found
    empty is looked at again, should a wake-up have been lost."""

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self._until: dict[Route, float] = {}
        self._empty: set[Route] = set()  # nothing was there, and nothing to come
        self.paused: set[Route] = set()
        self.full: set[Route] = set()

    def note(self, route: Route, reply: LeaseReply, *, found: bool) -> None:
        """What a lease call has told."""
        is_empty = not reply.ready_left and reply.next_due is None and not reply.paused and not reply.full
        for kind, is_so in ((self.paused, reply.paused), (self.full, reply.full), (self._empty, is_empty)):
            (kind.add if is_so else kind.discard)(route)
        if reply.paused or not found or not reply.ready_left:
            self._until[route] = monotonic() + self._seconds(reply)
        else:
            self._until.pop(route, None)

    def wake(self, route: Route) -> None:
        """It may have something."""
        self._until.pop(route, None)

    def is_asleep(self, route: Route) -> bool:
        return self._until.get(route, 0.0) > monotonic()

    def are_known(self, routes: Iterable[Route]) -> bool:
        """Whether nothing was left in any of these when it was asked last, and nobody was woken since."""
        return all(route in self._until for route in routes)

    def prolong(self, are_empty: Callable[[Sequence[Route]], bool]) -> None:
        """Partitions that were empty, and whose nap is over or nearly so, sleep on if they still are. All of them are
        asked about with one question: an idle worker costs the same however many pools it serves."""
        now = monotonic()
        idle = [route for route in self._empty if route in self._until]
        if not any(self._until[route] <= now for route in idle):
            return
        together = [route for route in idle if self._until[route] <= now + TOGETHER * self.longest]
        if are_empty(together):
            self._until.update(dict.fromkeys(together, now + self.longest))
        else:
            self._empty.difference_update(together)  # each is to be asked by itself

    def seconds_until_any(self, routes: Collection[Route]) -> float:
        """Until the first of these may have something again."""
        now = monotonic()
        return min((self._until.get(route, now) - now for route in routes), default=self.longest)

    def _seconds(self, reply: LeaseReply) -> float:
        if reply.full:
            return FULL_SECONDS
        if reply.next_due is None or reply.paused:
            return self.longest
        return min(self.longest, max(0.0, (reply.next_due - reply.now) / 1000) + DUE_MARGIN_SECONDS)
