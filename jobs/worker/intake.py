"""What lease calls bring: as much as there is room for goes into the slots, and the rest back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from jobs.core.job import LeasedJob, Route
from jobs.engine import BATCH, LeaseReply
from jobs.registry import registry
from jobs.worker.batch import Batch
from jobs.worker.cells import Cells
from jobs.worker.flusher import Flusher
from jobs.worker.line import Line
from jobs.worker.naps import Naps
from jobs.worker.options import WorkerOptions
from jobs.worker.permits import Permits
from jobs.worker.settlement import Park, Release
from jobs.worker.slots import PoolSlots
from jobs.worker.work import Work

UNFLUSHED_LIMIT = 5000
"""No new jobs while so many results wait for the store."""


class Intake:
    """Belongs to whoever leases just then. ``lines``: by pool, they may become more. ``is_open``: whether anything is
    taken now. ``announce`` writes a batch into the ledger before any of its jobs can start; ``on_spent`` is told when
    ``max_jobs`` have been taken."""

    def __init__(
        self,
        options: WorkerOptions,
        lines: Mapping[str, Line],
        naps: Naps,
        *,
        is_open: Callable[[], bool],
        cells: Cells,
        flusher: Flusher,
        permits: Permits,
        announce: Callable[[Batch, list[str]], None],
        on_spent: Callable[[], None],
    ) -> None:
        self.jobs_taken = 0
        self._batches = 0
        self._options = options
        self._lines = lines
        self._naps = naps
        self._is_open = is_open
        self._cells = cells
        self._flusher = flusher
        self._permits = permits
        self._announce = announce
        self._on_spent = on_spent

    @property
    def in_hand(self) -> int:
        return sum(line.slots.in_hand for line in list(self._lines.values()))

    def room(self, pool: str) -> int:
        """How many jobs to ask for now; 0 while there are enough."""
        self._lines[pool].measure()
        return self.room_as_measured(pool)

    def room_as_measured(self, pool: str) -> int:
        """The same by what was known when it was asked last: an answer has come, and its job waits for no sums."""
        line = self._lines[pool]
        if not self._is_open() or line.has_enough or self._flusher.backlog > UNFLUSHED_LIMIT:
            return 0
        return min(line.room, BATCH, *self._allowances())

    def limit(self, route: Route, room: int) -> int:
        """How many to ask for where there is so much room: more, where limits hold some back."""
        return self._permits.lease_limit(route, room) if self._permits.are_needed else room

    def let_through(self, route: Route, token: str, reply: LeaseReply, room: int) -> Sequence[LeasedJob]:
        """Those that limits allow to start. To be called again where it fails."""
        if not self._permits.are_needed or not room:
            return reply.jobs
        return self._permits.let_through(route, token, reply.jobs, room)

    def take(
        self, route: Route, token: str, leased_at: float, now_ms: int, jobs: Sequence[LeasedJob], room: int
    ) -> None:
        """As many as there is room for; the others go back."""
        if not jobs:
            return
        self._batches += 1
        batch = Batch(
            self._batches,
            token,
            route,
            len(jobs),
            leased_at=leased_at,
            clock_offset=now_ms - monotonic() * 1000,
            lease_seconds=self._options.lease_seconds,
            cells=self._cells,
        )
        self._announce(batch, [job.id for job in jobs])
        self.jobs_taken += len(jobs[:room])
        self._lines[route.pool].hand(self._runnable(batch, jobs[:room]))
        for job in jobs[room:]:
            self._flusher.settle(batch, Release(job.id, job.token, job.type))
        if self._options.max_jobs is not None and self.jobs_taken >= self._options.max_jobs:
            self._on_spent()

    def note(self, route: Route, reply: LeaseReply) -> None:
        """What else the reply has told."""
        self._naps.note(route, reply, found=bool(reply.jobs))
        if reply.paused:
            self.hand_back(self._lines[route.pool].slots)

    def hand_back(self, pool: PoolSlots) -> None:
        """Whatever no slot has begun."""
        for work in pool.take_back():
            self.jobs_taken -= 1
            self._flusher.settle(work.batch, Release(work.lease.id, work.lease.token, work.lease.type))

    def _allowances(self) -> list[int]:
        """What is left of the limits of the whole process."""
        left = []
        if self._options.shared_slots is not None:
            left.append(self._options.shared_slots - self.in_hand)  # nothing is held ready for slots that are shared
        if self._options.max_in_flight is not None:
            left.append(self._options.max_in_flight - self.in_hand)
        if self._options.max_jobs is not None:
            left.append(self._options.max_jobs - self.jobs_taken)
        return left

    def _runnable(self, batch: Batch, jobs: Sequence[LeasedJob]) -> list[Work]:
        """The jobs that may run here; the others are parked."""
        works = []
        for lease in jobs:
            if lease.type in registry:
                works.append(Work(batch, lease, registry.get(lease.type)))
            else:
                self._flusher.settle(batch, Park(lease.id, lease.token, lease.type))
        return works
