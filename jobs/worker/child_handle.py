"""What the supervisor knows of one child: its process, its link, and the leases it holds."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import time
from typing import NamedTuple

from jobs.core.job import Route
from jobs.runtime.process import is_stopped
from jobs.worker.cells import Cells
from jobs.worker.ledger import Ledger
from jobs.worker.link import Link
from jobs.worker.messages import CancelRequested, FromSupervisor, Opened, Report
from jobs.worker.nursery import Conception


class HeldLease(NamedTuple):
    """One job in the hands of one child."""

    route: Route
    id: str
    token: str


class StartedLease(NamedTuple):
    """A lease whose job has begun. ``started_at_ms``: server clock. ``times_out_at``: monotonic; inf: never."""

    lease: HeldLease
    started_at_ms: int
    times_out_at: float = inf


class _OpenBatch:
    def __init__(self, opened: Opened) -> None:
        self.token = opened.token
        self.route = Route(*opened.route)
        self.ids = opened.ids
        self.leased_at = opened.leased_at

    def leases(self) -> list[HeldLease]:
        return [HeldLease(self.route, job_id, self.token) for job_id in self.ids]


class Suspect(NamedTuple):
    """The lease that a child was made for, to run its job alone."""

    lease: HeldLease
    asker: ChildHandle  # whose slot waits for it


class ChildHandle:
    """Written by the supervisor's main thread; leases are also read, and dropped, by the threads that keep them."""

    def __init__(self, number: int, worker_id: str, conception: Conception) -> None:
        self.number = number
        self.id = worker_id
        self.link = Link.of_supervisor(conception.link)
        self._ledger = Ledger(conception.ledger)
        self.cells = Cells(conception.cells_fd)
        os.close(conception.cells_fd)  # the mapping stays
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.started_at_ms = int(time() * 1000)
        self.is_ready = False
        self.is_leaving = False
        self.suspect: Suspect | None = None  # set: it was made for this one lease
        self.report = Report({}, 0, 0, None, False)
        self.has_said_bye = False
        self.is_waited_for = False  # until its link has room for what is unsent
        self.is_condemned = False  # a handler in it does not stop: it ends now, whatever else it runs
        self._batches: dict[int, _OpenBatch] = {}
        self._cancelled_at: dict[HeldLease, float] = {}
        self._lock = threading.Lock()

    @property
    def is_alone(self) -> bool:
        """Made for one job under suspicion; counts for nothing else."""
        return self.suspect is not None

    @property
    def can_work(self) -> bool:
        """Alive, and not frozen: only such a child may have its leases renewed."""
        return self.pid is not None and self.exit_code is None and not is_stopped(self.pid)

    @property
    def trouble(self) -> str | None:
        """Why it takes no jobs, in words; None where it does. A frozen process cannot say so itself."""
        if self.pid is not None and self.exit_code is None and is_stopped(self.pid):
            return f"its process is frozen; kill -CONT {self.pid} wakes it"
        return self.report.trouble

    @property
    def has_started(self) -> bool:
        """Whether a job runs now, or ran when it died. Asked many times a second, and mostly for nothing."""
        return bool(self.cells.started())

    def send(self, message: FromSupervisor) -> None:
        self.link.send(message)

    def kill(self) -> None:
        if self.pid is not None and self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """It is gone, and what it left was read."""
        self.link.close()
        self._ledger.close()

    # leases

    def read_ledger(self) -> None:
        """Learns which batches it holds by now. Whatever is asked or told of its leases does so first."""
        with self._reading():
            pass

    def open_batch(self, opened: Opened) -> None:
        """It holds one that is not in its ledger."""
        with self._lock:
            self._open(opened)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Holds the lock, and knows what the child has written so far."""
        with self._lock:
            for entry in self._ledger.read():
                if isinstance(entry, Opened):
                    self._open(entry)
                else:
                    self._close(entry.batch)
            yield

    def _open(self, opened: Opened) -> None:
        self._batches[opened.batch] = _OpenBatch(opened)

    def _close(self, number: int) -> None:
        if (batch := self._batches.pop(number, None)) is not None and self._cancelled_at:
            self._forget_cancels(lambda lease: lease.token == batch.token)

    def leases(self, *, until: float = inf) -> tuple[int, list[HeldLease]]:
        """The number of the newest batch that was leased until then (monotonic), 0 where there is none; and all that it
        holds of this batch and those before it."""
        with self._reading():
            newest = max((number for number, batch in self._batches.items() if batch.leased_at <= until), default=0)
            held = [batch for number, batch in self._batches.items() if number <= newest]
            return newest, [lease for batch in held for lease in batch.leases()]

    def drop(self, leases: set[HeldLease]) -> None:
        """These need no renewal any more, though their batch is still open."""
        with self._reading():
            for batch in self._batches.values():
                gone = {lease.id for lease in leases if lease.token == batch.token}
                if not gone.isdisjoint(batch.ids):
                    batch.ids = [job_id for job_id in batch.ids if job_id not in gone]
            self._forget_cancels(lambda lease: lease in leases)

    def cancel(self, leases: list[HeldLease], moment: float) -> None:
        """Somebody asked for the end of these jobs, and was heard at this monotonic moment at the latest."""
        with self._reading():
            held = {batch.token for batch in self._batches.values()}
            leases = [lease for lease in leases if lease.token in held]  # with the others nobody would forget it
            for lease in leases:
                self._cancelled_at.setdefault(lease, moment)
        self.send(CancelRequested([(lease.id, lease.token) for lease in leases]))

    def cancelled_at(self, lease: HeldLease) -> float:
        """When its job was first found to be cancelled, monotonic; inf: it is not."""
        return self._cancelled_at.get(lease, inf)

    def started(self) -> list[StartedLease]:
        """Jobs that run now, or ran when it died."""
        if not self.has_started:
            return []
        with self._reading():
            return [
                StartedLease(HeldLease(batch.route, job.id, batch.token), job.started_at_ms, job.times_out_at)
                for job in self.cells.started()
                if (batch := self._batches.get(job.batch)) is not None
            ]

    def _forget_cancels(self, of: Callable[[HeldLease], bool]) -> None:
        self._cancelled_at = {lease: moment for lease, moment in self._cancelled_at.items() if not of(lease)}
