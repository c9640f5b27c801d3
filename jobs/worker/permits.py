"""Lets leased jobs through to the slots as far as the limits of their types allow; the others wait in their lines.

Jobs without limits pay a look at their type for it, and nothing in a process that knows no limited type.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

from jobs.core.job import LeasedJob, Route
from jobs.core.limits import TypeLimits
from jobs.engine import Engine, Leave
from jobs.registry import registry
from jobs.runtime.loop import ENVIRONMENT_ERRORS
from jobs.worker.lookahead import MOST

log = logging.getLogger("jobs.worker")

LAZY_SECONDS = 0.02
"""While nobody is known to wait, places are given back with the next request for leave, or after as long."""

MANY = 500
"""As many are given back at once, whoever waits."""

Lease = tuple[str, str]


class Permits:
    """One for each child. ``ended`` and ``flush`` belong to the flusher, all else to the fetcher."""

    def __init__(self, engine: Engine) -> None:
        self._limits: dict[str, TypeLimits] = {
            name: job_type.limits for name, job_type in registry.all().items() if job_type.limits is not None
        }
        self._engine = engine
        self._places = {name for name, limits in self._limits.items() if limits.concurrency is not None}
        self._held_lately: dict[Route, int] = {}
        self._unsure: set[str] = set()  # tokens for which leave was asked and no answer came
        self._lock = threading.Lock()
        self._over: defaultdict[str, list[Lease]] = defaultdict(list)
        self._give_at: float | None = None

    @property
    def are_needed(self) -> bool:
        """Whether any type of this process has limits."""
        return bool(self._limits)

    # leave

    def lease_limit(self, route: Route, room: int) -> int:
        """How many jobs to lease to find as many that may start: more, while those at the head of the line have to
        wait. They are put aside by that, so a long row of them is passed in a few steps."""
        return min(MOST, room + 2 * self._held_lately.get(route, 0))

    def let_through(self, route: Route, token: str, jobs: Sequence[LeasedJob], most: int) -> Sequence[LeasedJob]:
        """Those that may start, in order, at most ``most``. The others have gone back, or into the lines of their keys.

        To be called again for the same lease where it fails.
        """
        limited: defaultdict[str, list[LeasedJob]] = defaultdict(list)
        for job in jobs:
            if job.type in self._limits:
                limited[job.type].append(job)
        self._held_lately.pop(route, None)
        if not limited and len(jobs) <= most:
            return jobs
        again = token in self._unsure
        self._unsure.add(token)
        stopped: set[str] = set()
        resting: set[str] = set()
        for type_name, of_type in limited.items():
            leave = self._ask(self._limits[type_name], route, token, of_type, most, again=again)
            stopped.update(job.id for job, _ in leave.held)
            resting.update(job.id for job in leave.rest)
        if stopped:
            self._held_lately[route] = len(stopped)
        left = [job for job in jobs if job.id not in stopped] if stopped else list(jobs)
        passing = [job for job in left if job.id not in resting] if resting else left
        kept = passing[:most]
        if len(kept) < len(left):
            self._send_back(route, left, kept)
        self._unsure.discard(token)
        return kept

    def _ask(
        self, limits: TypeLimits, route: Route, token: str, jobs: Sequence[LeasedJob], most: int, *, again: bool
    ) -> Leave:
        over = self._take_over(limits.type)
        try:
            leave = self._engine.limits.take(limits, route, token, jobs, most, over=over, again=again)
        except BaseException:
            self._put_over(limits.type, over)
            raise
        if leave.held:
            self._engine.limits.hold_back(limits, route, leave.held)
        return leave

    def _send_back(self, route: Route, left: Sequence[LeasedJob], kept: Sequence[LeasedJob]) -> None:
        """More than there is room for: back to their old places."""
        going = {job.id for job in kept}
        surplus = [job for job in left if job.id not in going]
        self._engine.leases.release(route, [(job.id, job.token) for job in surplus])
        self.ended(surplus)

    # time

    def turn(self) -> None:
        """What is due: for the lines of those that wait, and places that nobody has asked for."""
        self._engine.limits.turn_due()
        if self._give_at is not None and monotonic() >= self._give_at:
            self.flush()

    def seconds_to_turn(self) -> float | None:
        """Until ``turn`` has something to do; None where nothing is to come."""
        give_at, seconds = self._give_at, self._engine.limits.seconds_to_turn()
        if give_at is None:
            return seconds
        left = max(0.0, give_at - monotonic())
        return left if seconds is None else min(left, seconds)

    # places

    def ended(self, items: Iterable[Any]) -> None:
        """These attempts (with ``type``, ``id``, ``token``) are over, and the store knows: their places are free."""
        leases: defaultdict[str, list[Lease]] = defaultdict(list)
        for item in items:
            if item.type in self._places:  # a start that was made is not given back
                leases[item.type].append((item.id, item.token))
        for type_name, of_type in leases.items():
            self._put_over(type_name, of_type)
            if len(self._over[type_name]) >= MANY or self._engine.limits.is_waited_for(self._limits[type_name]):
                self._give(type_name)

    def flush(self) -> None:
        """Gives all places back that are free."""
        for type_name in list(self._over):
            self._give(type_name)

    def _give(self, type_name: str) -> None:
        over = self._take_over(type_name)
        if not over:
            return
        try:
            self._engine.limits.give(self._limits[type_name], over)
        except ENVIRONMENT_ERRORS as error:
            log.warning("%d places of %s were not given back; they will be found: %s", len(over), type_name, error)

    def _take_over(self, type_name: str) -> list[Lease]:
        """The leases that are over, for whoever tells of them."""
        with self._lock:
            over, self._over[type_name] = self._over[type_name], []
            if not any(self._over.values()):
                self._give_at = None
        return over

    def _put_over(self, type_name: str, leases: Sequence[Lease]) -> None:
        if leases:
            with self._lock:
                self._over[type_name] += leases
                if self._give_at is None:
                    self._give_at = monotonic() + LAZY_SECONDS
