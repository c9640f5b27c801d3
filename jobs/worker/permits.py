"""Lets leased jobs through to the slots as far as the limits of their types allow; the others wait in their lines.

Jobs without limits pay a look at their type for it, and nothing in a process that knows no limited type.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.core.job import LeasedJob, Route
from jobs.core.limits import TypeLimits
from jobs.engine import Engine
from jobs.registry import registry
from jobs.runtime.loop import ENVIRONMENT_ERRORS
from jobs.worker.lookahead import MOST

log = logging.getLogger("jobs.worker")


class Permits:
    """One for each child. ``let_through`` belongs to the fetcher, ``ended`` to the flusher."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limits: dict[str, TypeLimits] = {
            name: job_type.limits for name, job_type in registry.all().items() if job_type.limits is not None
        }
        self._held_lately: dict[Route, int] = {}

    @property
    def are_needed(self) -> bool:
        """Whether any type of this process has limits."""
        return bool(self._limits)

    def lease_limit(self, route: Route, room: int) -> int:
        """How many jobs to lease to find as many that may start: more, while those at the head of the line have to
        wait. They are put aside by that, so a long row of them is passed in a few steps."""
        return min(MOST, room + 2 * self._held_lately.get(route, 0))

    def let_through(self, route: Route, token: str, jobs: Sequence[LeasedJob], most: int) -> list[LeasedJob]:
        """Those that may start, in order, at most ``most``. The others have gone back, or into the lines of their keys.

        May be called again for the same lease.
        """
        limited: defaultdict[str, list[LeasedJob]] = defaultdict(list)
        for job in jobs:
            if job.type in self._limits:
                limited[job.type].append(job)
        self._held_lately.pop(route, None)
        if not limited and len(jobs) <= most:
            return list(jobs)
        going = {job.id for job in jobs if job.type not in limited}
        for type_name, of_type in limited.items():
            leave = self._engine.limits.take(self._limits[type_name], route, token, of_type, most)
            going.update(job.id for job in leave.go)
            if leave.held:
                self._held_lately[route] = self._held_lately.get(route, 0) + len(leave.held)
                self._engine.limits.hold_back(self._limits[type_name], route, leave.held)
                held = {job.id for job, _ in leave.held}
                jobs = [job for job in jobs if job.id not in held]
        passing = [job for job in jobs if job.id in going]
        kept = passing[:most]
        self._send_back(route, [job for job in jobs if job.id not in {job.id for job in kept}], passing[most:])
        return kept

    def _send_back(self, route: Route, surplus: Sequence[LeasedJob], passing: Iterable[LeasedJob]) -> None:
        """More than there is room for: back to their old places."""
        if surplus:
            self._engine.leases.release(route, [(job.id, job.token) for job in surplus])
            self.ended(passing)

    def turn(self) -> None:
        """What is due for the lines of those that wait."""
        self._engine.limits.turn_due()

    def seconds_to_turn(self) -> float | None:
        """Until ``turn`` has something to do; None where nothing is to come."""
        return self._engine.limits.seconds_to_turn()

    def ended(self, items: Iterable[Any]) -> None:
        """These attempts (with ``type``, ``id``, ``token``) are over, and the store knows: their places are free."""
        leases: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for item in items:
            if item.type in self._limits:
                leases[item.type].append((item.id, item.token))
        for type_name, of_type in leases.items():
            try:
                self._engine.limits.give(self._limits[type_name], of_type)
            except ENVIRONMENT_ERRORS as error:
                log.warning(
                    "places of %d jobs of %s were not given back, they will be found: %s",
                    len(of_type),
                    type_name,
                    error,
                )
