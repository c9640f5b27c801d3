"""Stops handlers that must stop: cancelled, over time, or without a lease.

An async handler is cancelled. A sync one is asked, and hears of it when it asks back; one that was cancelled and has
not ended after the cancel's grace, or that is over time, gets an exception raised in its thread. Whoever does not stop
then either (it waits in C code, or swallows the exception) is ended with its process, by the supervisor's watchdog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from jobs.core.wheel import Timer, Wheel
from jobs.exceptions import LeaseLost
from jobs.worker.batch import Marks
from jobs.worker.verdict import cancelled, timed_out

if TYPE_CHECKING:
    from jobs.worker.executor import Execution

log = logging.getLogger("jobs.worker")

INSIST_SECONDS = 0.05
"""A handler that cannot be interrupted yet, because its thread is still on the way to it, is tried again so soon."""


class Watch:
    """Belongs to the control thread, which drives ``wheel`` and calls ``look`` again and again.

    Timers are armed for what ``look`` finds running: a job that ends between two looks costs nothing.
    """

    def __init__(
        self, wheel: Wheel, running: Callable[[], list[Execution]], marks: Marks, *, cancel_grace: float
    ) -> None:
        self._wheel = wheel
        self._running = running
        self._marks = marks
        self._cancel_grace = cancel_grace
        self._timers: dict[Execution, list[Timer]] = {}

    def look(self) -> None:
        running = self._running()
        for execution in self._timers.keys() - set(running):
            for timer in self._timers.pop(execution):
                timer.cancel()
        for execution in running:
            if execution not in self._timers:
                self._begin(execution)
            if execution.context.stop_reason is None:
                self._stop_if_it_must(execution)

    def _begin(self, execution: Execution) -> None:
        self._timers[execution] = []
        if execution.lease.timeout is not None:
            stop = partial(self._stop, execution, timed_out(execution.lease))
            self._timers[execution].append(self._wheel.at(execution.times_out_at, stop))

    def _stop_if_it_must(self, execution: Execution) -> None:
        lease, job_id = execution.lease, execution.lease.id
        if self._marks.is_lost(lease):
            self._stop_without_lease(execution, f"The lease of job {job_id} belongs to another worker now.")
        elif execution.batch.is_over(monotonic()):
            self._stop_without_lease(execution, f"The lease of job {job_id} could not be renewed in time.")
        elif self._marks.is_cancelled(lease):
            reason = cancelled(lease)
            execution.ask_to_stop(reason)
            self._stop_after(self._cancel_grace, execution, reason)

    def _stop_without_lease(self, execution: Execution, why: str) -> None:
        log.warning("%s Its handler is asked to stop.", why)
        execution.ask_to_stop(LeaseLost(why))

    def _stop(self, execution: Execution, reason: BaseException) -> None:
        if not execution.stop(reason):
            self._stop_after(INSIST_SECONDS, execution, reason)

    def _stop_after(self, seconds: float, execution: Execution, reason: BaseException) -> None:
        self._timers[execution].append(self._wheel.after(seconds, partial(self._stop, execution, reason)))
