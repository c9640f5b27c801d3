"""Tells the store how attempts ended, many at a time, and keeps the results until it has heard them.

The only thread that settles batches: slots, fetcher and shutdown all hand it what became of a job.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from jobs.core.job import Route
from jobs.engine import Completion, Engine, Failure
from jobs.runtime.loop import ENVIRONMENT_ERRORS, Backoff, sleep
from jobs.worker.batch import Batch, Marks
from jobs.worker.herald import Herald
from jobs.worker.messenger import Messenger
from jobs.worker.permits import Permits
from jobs.worker.reports import Reports
from jobs.worker.settlement import Drop, Elsewhere, Park, Release, Settlement

log = logging.getLogger("jobs.worker")

MOST = 1000
"""Settlements in one call; a script takes no more."""

GATHER_SECONDS = 0.0025
"""While jobs end by the dozen: how long the first waits for others to share its call."""

BUSY = 8
"""As many in one flush, and it is worth gathering for the next."""

PLENTY = 250
"""As many that wait already are a call of their own: the server shall not stand still while more are gathered."""


class Flusher(threading.Thread):
    """``settle`` from any thread. ``marks``: learns which leases the store says are not ours, and forgets those of each
    batch whose jobs have all been settled; ``on_closed`` is told its number, ``on_burial`` that a job has died.
    ``on_failure``: what cannot go on here must not be kept leased by a process that looks alive.

    ``reports``: what running jobs say is told here too, and the last of it before the job's end. ``herald`` and
    ``messenger`` hear what the store has accepted.
    """

    def __init__(
        self,
        engine: Engine,
        permits: Permits,
        marks: Marks,
        on_closed: Callable[[int], object],
        on_settled: Callable[[set[Route]], object],
        on_failure: Callable[[], object],
        on_burial: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(name="flusher", daemon=True)
        self._on_failure = on_failure
        self._engine = engine
        self._permits = permits
        self._marks = marks
        self._on_settled = on_settled
        self._on_closed = on_closed
        self._on_burial = on_burial
        self._outbox: SimpleQueue[tuple[Batch, Settlement] | None] = SimpleQueue()
        self._in_flight = 0
        self.reports = Reports(engine, self._wake, marks.lost.add)
        self.herald = Herald()
        self.messenger = Messenger(engine)
        self._backoff = Backoff()
        self._give_up_at: float | None = None
        self._untold = 0
        self._pause = threading.Event()  # never set before the end: a sleep that the end cuts short
        self.trouble: str | None = None
        self._senders: dict[type[Any], Callable[[Route, list[Any]], list[str]]] = {
            Completion: engine.leases.complete,
            Failure: engine.leases.fail,
            Release: self._release,
            Park: self._park,
        }

    def settle(self, batch: Batch, settlement: Settlement) -> None:
        """What became of one job of the batch. Once for each job."""
        self._outbox.put((batch, settlement))

    @property
    def backlog(self) -> int:
        """Settlements that the store has not accepted, signals that were not sent, ends that no run has heard of."""
        return self._unsettled + self.herald.backlog + self.messenger.backlog

    @property
    def _unsettled(self) -> int:
        return self._outbox.qsize() + self._in_flight

    def _wake(self) -> None:
        self._outbox.put(None)

    def finish(self, timeout: float) -> bool:
        """Settle what is left and stop; False when the store would not hear all of it within ``timeout`` seconds."""
        self._give_up_at = monotonic() + timeout
        self._pause.set()
        self._outbox.put(None)
        self.join(timeout + 1.0)
        self.herald.finish(max(1.0, self._give_up_at - monotonic()))
        self.messenger.finish(max(1.0, self._give_up_at - monotonic()))
        return self._unsettled == 0 and self._untold == 0

    def run(self) -> None:
        try:
            self._serve()
        except BaseException:
            log.exception("the flusher failed")
            self._on_failure()

    def _serve(self) -> None:
        gather = False
        while self._give_up_at is None or not self._outbox.empty():
            settlements = self._collect(gather)
            gather = len(settlements) >= BUSY
            self._tell_reports(settlements)
            self._flush(settlements)
        self._tell_reports([], all_of_them=True)
        self._permits.flush()

    def _collect(self, gather: bool) -> list[tuple[Batch, Settlement]]:
        try:
            first = self._outbox.get(timeout=self.reports.seconds_until_due())
        except Empty:
            return []
        if gather and self._outbox.qsize() < PLENTY:
            self._pause.wait(GATHER_SECONDS)
        items = [first] if first is not None else []
        for _ in range(min(self._outbox.qsize(), MOST - 1)):
            if (item := self._outbox.get_nowait()) is not None:
                items.append(item)
        self._in_flight = len(items)
        return items

    def _flush(self, settlements: list[tuple[Batch, Settlement]]) -> None:
        by_batch = _grouped(settlements)
        routes: set[Route] = set()
        for (route, kind), items in _merged(by_batch).items():
            if kind is Elsewhere:
                continue
            if kind is Drop:
                log.warning("lost the leases of %d jobs: what they did here is not reported", len(items))
                continue
            self._send(self._senders[kind], route, items)
            routes.add(route)
            if self._permits.are_needed:
                self._permits.ended(items)
        if routes:
            self._on_settled(routes)
        if not self._untold:  # else the supervisor shall see to what is left open
            self._close_batches(by_batch)
        self._in_flight = 0

    def _send(self, send: Callable[[Route, list[Any]], list[str]], route: Route, items: list[Any]) -> None:
        """Until it is accepted or refused: the verbs are safe to repeat under the same token."""
        while True:
            try:
                answers = send(route, items)
            except ENVIRONMENT_ERRORS as error:
                if not self._wait_out(error, len(items)):
                    return
            except Exception as error:
                self._send_singly(send, route, items, error)
                return
            else:
                self.trouble = None
                self._backoff.reset()
                self._hear(items, answers)
                return

    def _hear(self, items: list[Any], answers: list[str]) -> None:
        self.herald.hear(items, answers)
        self.messenger.hear(items)
        if isinstance(items[0], Failure) and "dead" in answers:
            self._on_burial()

    def _wait_out(self, error: Exception, count: int) -> bool:
        """False when there is no time left to try again."""
        if self._give_up_at is not None and monotonic() > self._give_up_at:
            log.error("gave up telling the end of %d jobs, they will run again: %s", count, error)
            self._untold += count
            return False
        self._note_trouble(error)
        sleep(self._backoff.next_seconds())
        return True

    def _note_trouble(self, error: Exception) -> None:
        if self.trouble is None:
            log.warning("cannot report ended jobs, results are kept: %s", error)
        self.trouble = str(error)

    def _send_singly(
        self, send: Callable[[Route, list[Any]], list[str]], route: Route, items: list[Any], error: Exception
    ) -> None:
        """One of them is refused with an error: find it, so that its neighbours do not suffer."""
        if len(items) == 1:
            log.error("the store refuses the end of job %s, it will run again: %s", items[0].id, error, exc_info=error)
            return
        for item in items:
            self._send(send, route, [item])

    def _close_batches(self, by_batch: _ByBatch) -> None:
        for (batch, _), items in by_batch.items():
            batch.remaining -= len(items)
            if batch.remaining == 0:
                self._marks.forget(batch.token)
                self._on_closed(batch.number)

    def _tell_reports(self, settlements: list[tuple[Batch, Settlement]], *, all_of_them: bool = False) -> None:
        """Before the ends: of a job that has ended nothing more can be told."""
        while not self.reports.is_empty:
            ending = [(str(end.id), batch.token) for batch, end in settlements]
            try:
                self.reports.tell(ending, all_of_them=all_of_them)
            except ENVIRONMENT_ERRORS as error:
                if not settlements or (self._give_up_at is not None and monotonic() > self._give_up_at):
                    return  # the next round tries again
                self._note_trouble(error)
                sleep(self._backoff.next_seconds())
            except Exception:
                log.exception("what running jobs say of themselves could not be told")
                return
            else:
                return

    # the verbs that take leases

    def _release(self, route: Route, items: list[Release]) -> list[str]:
        for charged in (False, True):
            if leases := [(item.id, item.token) for item in items if item.charged is charged]:
                self._engine.leases.release(route, leases, charged=charged)
        return []

    def _park(self, route: Route, items: list[Park]) -> list[str]:
        return self._engine.leases.park(route, items)


_ByBatch = dict[tuple[Batch, type[Any]], list[Any]]


def _grouped(settlements: list[tuple[Batch, Settlement]]) -> _ByBatch:
    """First by batch, which compares by identity: a route in the key of each job would cost more than the rest."""
    groups: defaultdict[tuple[Batch, type[Any]], list[Any]] = defaultdict(list)
    for batch, settlement in settlements:
        groups[batch, type(settlement)].append(settlement)
    return groups


def _merged(by_batch: _ByBatch) -> dict[tuple[Route, type[Any]], list[Any]]:
    """What goes to the store in one call."""
    groups: defaultdict[tuple[Route, type[Any]], list[Any]] = defaultdict(list)
    for (batch, kind), items in by_batch.items():
        groups[batch.route, kind] += items
    return groups
