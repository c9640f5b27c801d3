"""Keeps the leases of all children of a host: renews them, marks what has begun, and settles what the dead leave.

It runs in threads of the supervisor, so a handler that holds its interpreter's lock for minutes cannot lose its lease;
and it proves before each renewal that the child is alive and not frozen, so a stuck process cannot keep one.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic
from typing import NamedTuple

from jobs.core.job import Route
from jobs.engine import Engine
from jobs.registry import registry
from jobs.runtime.announcing import announce_burials
from jobs.runtime.loop import ENVIRONMENT_ERRORS
from jobs.worker.child_handle import ChildHandle, HeldLease, StartedLease
from jobs.worker.messages import Lost
from jobs.worker.options import WorkerOptions
from jobs.worker.verdict import did_not_stop, failure_of

log = logging.getLogger("jobs.worker")

HOMELESS_SECONDS = 0.1
"""A cancelled job that no child here holds is looked for again as soon: its lease may just be on its way to one."""

FRESH_SHARE = 0.1
"""Of a lease: one that is no older is renewed with the next round. Most jobs have ended by then, and were never asked
about; the others are renewed before half of their time is over."""

IDLE_SECONDS = 60.0
"""Settler and marker have nothing to do until they are nudged."""


class Renewer:
    """``tick`` renews every lease of every child that can work, and learns which jobs were cancelled meanwhile."""

    def __init__(self, engine: Engine, children: Callable[[], list[ChildHandle]], options: WorkerOptions) -> None:
        self._engine = engine
        self._children = children
        self._options = options
        self._rumours: SimpleQueue[str] = SimpleQueue()
        self._homeless: set[str] = set()  # heard of since the last renewal, and held by no child yet
        self._due_at = 0.0
        self._began_at = monotonic()
        self._renewed_at: dict[Route, float] = {}  # when the last round began that could renew there

    def hear(self, job_ids: Iterable[str]) -> None:
        """From any thread: somebody may have asked for the end of these jobs. The next tick asks the store if it is so,
        where they run in this host; it looks for the others until the next renewal, which asks for all.
        """
        for job_id in job_ids:
            self._rumours.put(job_id)

    def tick(self) -> float:
        began_at = monotonic()
        self._take_rumours()
        self._follow_up()
        if began_at >= self._due_at:
            self._homeless.clear()
            self._renew_all(began_at)
            self._due_at = began_at + self._options.renewal_seconds
        rest = max(0.0, self._due_at - monotonic())
        return min(rest, HOMELESS_SECONDS) if self._homeless else rest

    def _take_rumours(self) -> None:
        while True:
            try:
                self._homeless.add(self._rumours.get_nowait())
            except Empty:
                return

    def _follow_up(self) -> None:
        if not self._homeless:
            return
        holders: defaultdict[Route, dict[HeldLease, ChildHandle]] = defaultdict(dict)
        for child in self._children():
            for lease in child.leases()[1]:
                if lease.id in self._homeless and child.can_work:
                    holders[lease.route][lease] = child
        for route, held in holders.items():
            self._renew(route, held)
            self._homeless.difference_update(lease.id for lease in held)

    def _renew_all(self, began_at: float) -> None:
        covered: list[tuple[ChildHandle, int]] = []
        holders: defaultdict[Route, dict[HeldLease, ChildHandle]] = defaultdict(dict)
        for child in self._children():
            newest, leases = child.leases(until=began_at - FRESH_SHARE * self._options.lease_seconds)
            if newest and child.can_work:
                covered.append((child, newest))
                for lease in leases:
                    holders[lease.route][lease] = child
        failures: list[Exception] = []
        behind: set[ChildHandle] = set()  # their deadlines stay as they are
        for route, held in holders.items():
            try:
                losers = self._renew(route, held)
            except Exception as error:  # one partition that is ill must not cost the others their leases
                failures.append(error)
                behind.update(held.values())
            else:
                behind |= losers if self._is_late(route, began_at) else set()
                self._renewed_at[route] = began_at
        for child, newest in covered:
            if child not in behind:
                child.cells.note_renewal(began_at, newest)
        if failures:
            raise failures[0]

    def _is_late(self, route: Route, began_at: float) -> bool:
        """We stood still, or the store was away, until leases ran out: others may have run our jobs. A child that has
        lost some hears it before its deadlines move on, with the next round: no handler may believe in between that it
        holds."""
        last = self._renewed_at.get(route, self._began_at)
        return began_at > last + (1.0 - FRESH_SHARE) * self._options.lease_seconds

    def _renew(self, route: Route, held: dict[HeldLease, ChildHandle]) -> set[ChildHandle]:
        """The children that have lost leases, or handed them back: only they know which, and say so where it matters.

        The same job may be held twice: handed back, and taken again.
        """
        reply = self._engine.leases.renew(route, [(lease.id, lease.token) for lease in held], self._options.lease_ms)
        lost, ended, cancelled = set(reply.lost), set(reply.ended), set(reply.cancelled)
        losers: set[ChildHandle] = set()
        if lost or ended or cancelled:
            leases_of: defaultdict[ChildHandle, list[HeldLease]] = defaultdict(list)
            for lease, child in held.items():
                leases_of[child].append(lease)
            for child, leases in leases_of.items():
                child.drop({lease for lease in leases if (lease.id, lease.token) in lost | ended})
                if taken := [(lease.id, lease.token) for lease in leases if (lease.id, lease.token) in lost]:
                    child.send(Lost(taken))
                    losers.add(child)
                if unwanted := [lease for lease in leases if (lease.id, lease.token) in cancelled]:
                    child.cancel(unwanted, monotonic())
        return losers


class StartMarker:
    """``tick`` tells the store which jobs have really begun: only they are charged when their host dies.

    It is wanted with each look of the crew that sees something run. What is seen twice is marked: shorter jobs are over
    before it matters.
    """

    def __init__(self, engine: Engine, children: Callable[[], list[ChildHandle]]) -> None:
        self._engine = engine
        self._children = children
        self._seen: set[StartedLease] = set()
        self._marked: set[StartedLease] = set()

    def tick(self) -> float:
        running = {started for child in self._children() for started in child.started()}
        due = running & self._seen - self._marked
        self._seen = running
        self._marked &= running
        for route, leases in _by_route(due).items():
            self._engine.leases.start(
                route, [(started.lease.id, started.lease.token, started.started_at_ms) for started in leases]
            )
        self._marked |= due
        return IDLE_SECONDS


class Estate(NamedTuple):
    """What a dead child leaves: the jobs that had begun, those of them that were cancelled, all that it held, and how
    it died."""

    worker_id: str
    started: list[StartedLease]
    cancelled: set[HeldLease]
    held: list[HeldLease]
    reason: str
    by_intent: bool  # it ended itself, and gave up what still ran: no crash
    is_condemned: bool  # it was ended because a job did not stop
    died_at: float  # monotonic


class CrashSettler:
    """``tick`` settles estates: a crash for each job that had begun, the others go back as if nothing had been.

    What a child gave up when it was told to end has begun too, and is charged, but is no crash. What a child ran beside
    a job that did not stop is not charged at all.
    """

    def __init__(self, engine: Engine, options: WorkerOptions, on_burial: Callable[[], object] = lambda: None) -> None:
        self._engine = engine
        self._options = options
        self._on_burial = on_burial
        self._estates: SimpleQueue[Estate] = SimpleQueue()
        self._current: Estate | None = None

    def take_over(self, child: ChildHandle, reason: str) -> None:
        """From the main thread, once the child is dead and its link has been read to the end."""
        _, held = child.leases()
        if held:
            started = child.started()
            cancelled = {begun.lease for begun in started if child.cancelled_at(begun.lease) < inf}
            self._estates.put(
                Estate(
                    worker_id=child.id,
                    started=started,
                    cancelled=cancelled,
                    held=held,
                    reason=reason,
                    by_intent=child.has_said_bye,
                    is_condemned=child.is_condemned,
                    died_at=monotonic(),
                )
            )

    @property
    def is_done(self) -> bool:
        return self._current is None and self._estates.empty()

    def tick(self) -> float:
        while self._next() is not None:
            self._settle_current()
        return IDLE_SECONDS

    def _next(self) -> Estate | None:
        if self._current is None:
            try:
                self._current = self._estates.get_nowait()
            except Empty:
                return None
        return self._current

    def _settle_current(self) -> None:
        """Raises while the store is away and is called again, until the leases have run out and others recover them."""
        estate = self._current
        assert estate is not None
        try:
            self._settle(estate)
        except ENVIRONMENT_ERRORS:
            if monotonic() < estate.died_at + self._options.lease_seconds:
                raise
        except Exception:
            log.exception("what %s held was not settled; it will be recovered", estate.worker_id)
        self._current = None

    def _settle(self, estate: Estate) -> None:
        for route, begun in _by_route(estate.started).items():
            if estate.is_condemned:
                self._fail_those_that_did_not_stop(route, begun, estate)
            elif estate.by_intent:
                leases = [(started.lease.id, started.lease.token) for started in begun]
                self._engine.leases.release(route, leases, charged=True)
            else:
                marks = [(started.lease.id, started.lease.token, started.started_at_ms) for started in begun]
                states = self._engine.leases.crash(route, marks, reason=estate.reason)
                self._tell_of_burials([mark[0] for mark in marks], states)
        settled = {started.lease for started in estate.started}
        rest: defaultdict[Route, list[HeldLease]] = defaultdict(list)
        for lease in estate.held:
            if lease not in settled:
                rest[lease.route].append(lease)
        for route, unbegun in rest.items():
            self._engine.leases.release(route, [(lease.id, lease.token) for lease in unbegun])

    def _fail_those_that_did_not_stop(self, route: Route, begun: list[StartedLease], estate: Estate) -> None:
        """Also those whose own grace was not over yet: they had their time, and got the exception."""
        guilty = {
            started.lease: started
            for started in begun
            if started.times_out_at <= estate.died_at or started.lease in estate.cancelled
        }
        neighbours = [started.lease for started in begun if started.lease not in guilty]
        self._engine.leases.release(route, [(lease.id, lease.token) for lease in neighbours])
        failures = [
            failure_of(
                did_not_stop(job, was_cancelled=held in estate.cancelled),
                job,
                registry.get(job.type),
                started_at=guilty[held].started_at_ms,
                error_limit=self._engine.settings.error_limit,
            )
            for held in guilty
            if (job := self._engine.leases.held(route, held.id, held.token)) is not None
        ]
        states = self._engine.leases.fail(route, failures)
        self._tell_of_burials([str(failure.id) for failure in failures], states)

    def _tell_of_burials(self, ids: list[str], states: list[str]) -> None:
        if buried := [job_id for job_id, state in zip(ids, states, strict=True) if state == "dead"]:
            self._on_burial()
            announce_burials(self._engine, buried)


def _by_route(started: Iterable[StartedLease]) -> dict[Route, list[StartedLease]]:
    groups: defaultdict[Route, list[StartedLease]] = defaultdict(list)
    for item in started:
        groups[item.lease.route].append(item)
    return groups
