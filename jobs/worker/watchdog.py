"""Finds handlers that go on although they had to stop, from outside of their process.

It reads what they run, and until when they may, in memory that they share with the supervisor: a handler that holds its
interpreter's lock, or that waits in C code for ever, cannot hide. Its process is ended and replaced; a slot counts as
free only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

from jobs.conf import Settings
from jobs.worker.child_handle import ChildHandle, StartedLease

FROZEN_SECONDS = 2.0
"""When a look is as late, this host stood still, and handlers had no chance to stop: they get their grace anew."""


class Watchdog:
    """``look`` several times a second. ``condemn`` is told a child, and what runs in it and does not stop."""

    def __init__(
        self,
        settings: Settings,
        condemn: Callable[[ChildHandle, list[StartedLease]], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._time_out_grace = settings.hard_timeout_grace
        self._cancel_grace = settings.cancel_grace + settings.hard_timeout_grace
        self._condemn = condemn
        self._clock = clock
        self._looked_at = clock()
        self._lenient_until = 0.0

    def look(self, children: Iterable[ChildHandle]) -> None:
        now = self._clock()
        if now > self._looked_at + FROZEN_SECONDS:
            self._lenient_until = now + self._time_out_grace
        self._looked_at = now
        if now < self._lenient_until:
            return
        for child in children:
            if not child.is_condemned and (overdue := self._overdue(child, now)):
                self._condemn(child, overdue)

    def _overdue(self, child: ChildHandle, now: float) -> list[StartedLease]:
        return [
            started
            for started in child.started()
            if now >= started.times_out_at + self._time_out_grace
            or now >= child.cancelled_at(started.lease) + self._cancel_grace
        ]
