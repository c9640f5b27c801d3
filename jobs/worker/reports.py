"""What running jobs say of themselves, gathered until it is told to the store: how far they are, and what they log.

Handlers never wait for it. Of progress only the last word counts; of lines as many are held as would be kept.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from time import monotonic
from typing import Any, NamedTuple

from jobs.core.job import LeasedJob, Route
from jobs.engine import Engine, NewLines
from jobs.exceptions import OutcomeUnknown, StoreUnavailable
from jobs.store.log_lines import encode_line

REPORT_SECONDS = 0.1
"""What a job says is told no more often than this."""

Lease = tuple[str, str]
"""Job id and token."""


class Progress(NamedTuple):
    lease: LeasedJob
    current: float
    total: float | None
    message: str


class Reports:
    """``progress`` and ``line`` from any thread, ``tell`` from the one that talks to the store.

    ``wake`` is called when there is something to be told after there was nothing; ``on_lost`` with each lease that the
    store says is not ours.
    """

    def __init__(self, engine: Engine, wake: Callable[[], object], on_lost: Callable[[Lease], object]) -> None:
        self._engine = engine
        self._wake = wake
        self._on_lost = on_lost
        self._lock = threading.Lock()  # only taken where there is something to say
        self._progress: dict[Lease, Progress] = {}
        self._lines: dict[Lease, _Lines] = {}
        self._due = 0.0

    def progress(self, lease: LeasedJob, current: float, total: float | None, message: str) -> None:
        """How far the job is; never blocks."""
        with self._lock:
            first = self.is_empty
            self._progress[lease.id, lease.token] = Progress(lease, current, total, message)
        if first:
            self._wake()

    def line(self, lease: LeasedJob, level: int, message: str, fields: dict[str, Any], *, at_ms: int) -> None:
        """A line of the job's log, written at this moment of the server's clock; never blocks."""
        limits = self._engine.settings
        if not limits.log_lines:
            return
        line = encode_line(at_ms, level, message, fields)
        with self._lock:
            first = self.is_empty
            lines = self._lines.get((lease.id, lease.token))
            if lines is None:
                lines = self._lines[lease.id, lease.token] = _Lines(lease.route, limits.log_lines, limits.log_bytes)
            lines.append(line)
        if first:
            self._wake()

    @property
    def is_empty(self) -> bool:
        """Nothing is to be told."""
        return not self._progress and not self._lines

    def seconds_until_due(self) -> float | None:
        """None where there is nothing to tell."""
        return None if self.is_empty else max(0.0, self._due - monotonic())

    def tell(self, ending: Collection[Lease], *, all_of_them: bool = False) -> None:
        """Tells what is due, in any case the last words of the jobs that are ending.

        StoreUnavailable where the server is away; what could not be told is told the next time.
        """
        with self._lock:
            chosen: Iterable[Lease] = ending
            if all_of_them or monotonic() >= self._due:
                chosen = {*self._progress, *self._lines}
                self._due = monotonic() + REPORT_SECONDS
            progress = {lease: said for lease in chosen if (said := self._progress.pop(lease, None)) is not None}
            lines = {lease: logged for lease in chosen if (logged := self._lines.pop(lease, None)) is not None}
        try:
            self._tell_progress(progress)
            self._tell_lines(lines)
        except OutcomeUnknown:
            pass  # told or not: twice the same lines would be worse than none
        except StoreUnavailable:
            self._put_back(progress, lines)
            raise

    def _tell_progress(self, told: dict[Lease, Progress]) -> None:
        by_route: defaultdict[Route, list[Progress]] = defaultdict(list)
        for progress in told.values():
            by_route[progress.lease.route].append(progress)
        for route, group in by_route.items():
            self._note_lost(self._engine.leases.progress_many(route, group))

    def _tell_lines(self, told: dict[Lease, _Lines]) -> None:
        by_route: defaultdict[Route, list[NewLines]] = defaultdict(list)
        for (job_id, token), lines in told.items():
            by_route[lines.route].append(NewLines(job_id, token, list(lines.kept), lines.gone))
        for route, group in by_route.items():
            self._note_lost(self._engine.logs.append(route, group))

    def _note_lost(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._on_lost(lease)

    def _put_back(self, progress: dict[Lease, Progress], lines: dict[Lease, _Lines]) -> None:
        """Under what was said meanwhile."""
        with self._lock:
            self._progress = progress | self._progress
            for lease, older in lines.items():
                if (newer := self._lines.get(lease)) is not None:
                    older.extend(newer)
                self._lines[lease] = older


class _Lines:
    """The newest lines of one attempt, within the limits of what is kept. ``gone``: how many made room for them."""

    def __init__(self, route: Route, most_lines: int, most_bytes: int) -> None:
        self.route = route
        self.kept: deque[bytes] = deque()
        self.gone = 0
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._bytes = 0

    def append(self, line: bytes) -> None:
        self.kept.append(line)
        self._bytes += len(line)
        while len(self.kept) > self._most_lines or (self._bytes > self._most_bytes and len(self.kept) > 1):
            self._bytes -= len(self.kept.popleft())
            self.gone += 1

    def extend(self, newer: _Lines) -> None:
        self.gone += newer.gone
        for line in newer.kept:
            self.append(line)
