"""The slots of one pool in this process: long-lived threads that run one job at a time each, fed from one queue."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from jobs.worker import database
from jobs.worker.batch import Batch
from jobs.worker.bridge import current_slot
from jobs.worker.cells import Cell, Cells
from jobs.worker.gate import Gate
from jobs.worker.settlement import Settlement
from jobs.worker.waiter import Waiter
from jobs.worker.work import Work

if TYPE_CHECKING:
    from jobs.worker.executor import Execution

log = logging.getLogger("jobs.worker")


Execute = Callable[["Slot", Work, float], Settlement]
"""Runs the work that begins at the given monotonic moment; never raises."""

Settle = Callable[[Batch, Settlement], None]


class Slot:
    """Capacity to run one job at a time. ``current`` is what runs in it, for those who may have to stop it."""

    cell: Cell

    def __init__(self, pool: PoolSlots, cells: Cells, execute: Execute, settle: Settle) -> None:
        self.ended = 0
        self.busy_seconds = 0.0
        self.begun: float | None = None
        self.current: Execution | None = None
        self.retired = True
        self.inbox: SimpleQueue[Any] | None = None  # while this slot waits for the event loop: what comes from there
        self.replies: SimpleQueue[object] = SimpleQueue()  # from the process in which a job of this slot runs alone
        self._pool = pool
        self._cells = cells
        self._execute = execute
        self._settle = settle

    def start(self, name: str) -> None:
        """Raises RuntimeError where no thread can be had: the slot rests then, as it did before."""
        self.cell = self._cells.new_cell()
        self.retired = False
        try:
            threading.Thread(target=self._serve_or_fail, name=name, daemon=True).start()
        except RuntimeError:
            self._rest()
            raise

    def _serve_or_fail(self) -> None:
        try:
            self._serve()
        except BaseException:  # memory that is not there, a fault of ours: its job has no thread any more
            log.critical("a slot failed; the worker ends", exc_info=True)
            self._pool.on_failure()

    def _serve(self) -> None:
        database.adopt_thread()
        current_slot.set(self)
        pool, execute, settle = self._pool, self._execute, self._settle
        while (work := self._next_work()) is not None:
            begun = self.begun = monotonic()
            settlement = execute(self, work, begun)
            self.busy_seconds += monotonic() - begun
            self.begun = None
            settle(work.batch, settlement)
            self.ended += 1  # only now: a process that has nothing in hand may end at any moment
            pool.slot_finished()
        pool.gate.leave(self)
        database.close_all()
        self._rest()

    def _rest(self) -> None:
        self._cells.give_back(self.cell)
        self.retired = True

    def _next_work(self) -> Work | None:
        """None: this slot is one too many."""
        item = self._pool.take_turn() or self._next_item()
        if isinstance(item, Waiter):
            return self._pool.wait_for_work(self, item)
        return item

    def _next_item(self) -> Work | Waiter | None:
        """What the last job left open is closed when it grows stale."""
        queue, gate = self._pool.queue, self._pool.gate
        while True:
            timeout = database.seconds_until_stale()
            try:
                if gate.enter(self, timeout):
                    return queue.get(timeout=timeout)
            except Empty:
                pass
            database.close_stale()


class PoolSlots:
    """All slots of one pool, and the thread that waits for its work, where there is a ``waiter``.

    ``on_failure``: a thread is lost, and with it a job that nobody would end. No process that looks alive must keep it.

    ``hand``, ``have_one_wait`` and ``take_back`` belong to one thread at a time (the fetcher's or the one that has been
    woken, then shutdown)."""

    def __init__(
        self,
        name: str,
        size: int,
        *,
        cells: Cells,
        execute: Execute,
        settle: Settle,
        on_room: Callable[[], None],
        on_failure: Callable[[], object] = lambda: None,
    ) -> None:
        self.name = name
        self.size = size
        self.queue: SimpleQueue[Work | Waiter | None] = SimpleQueue()
        self.gate = Gate(self.queue.qsize, lambda: self.ended)
        self.low_water = 0
        self.waiter: Waiter | None = None
        self._slots: list[Slot] = []
        self._turns_queued = 0
        self._handed = 0  # minus what was taken back
        self._threads = 0  # minus those that were told to retire
        self._cells = cells
        self._execute = execute
        self._settle = settle
        self._on_room = on_room
        self.on_failure = on_failure

    def hand(self, works: Sequence[Work]) -> None:
        """Into the slots, in this order. A single one for which a slot is free is kept by the thread that has found it
        at the server. Threads are started when there is first something for them to do."""
        if len(works) == 1 and self.waiter is not None and self.in_hand < self.size and self.waiter.keep(works[0]):
            self._handed += 1
            return
        self._pass_turn()  # before them: or all threads would work, and they are one too many
        for work in works:
            self._handed += 1
            self.queue.put(work)
        self._start_threads()

    def have_one_wait(self) -> None:
        """The waiter has been armed: if nobody has the turn to wait, a free thread shall take it."""
        self._pass_turn()
        self._start_threads()

    def take_turn(self) -> Waiter | None:
        """From a slot that is free: the waiter, where nobody waits."""
        return self.waiter if self.waiter is not None and self.waiter.take_turn() else None

    def wait_for_work(self, slot: Slot, waiter: Waiter) -> Work:
        """In the thread of the slot, whose turn it is: until it has found a job to run."""
        self._turns_queued = 0
        self.gate.leave(slot)
        return waiter.serve()

    def _pass_turn(self) -> None:
        if (waiter := self.take_turn()) is not None:
            self._turns_queued = 1
            self.queue.put(waiter)

    def take_back(self) -> list[Work]:
        """Whatever no slot has begun yet."""
        taken: list[Work] = []
        others: list[Waiter | None] = []
        while True:
            try:
                item = self.queue.get_nowait()
            except Empty:
                break
            if isinstance(item, Work):
                taken.append(item)
            else:
                others.append(item)
        for other in others:
            self.queue.put(other)
        self._handed -= len(taken)
        return taken

    def resize(self, size: int) -> None:
        """Follow a change of the pool's slots. Fewer: running jobs finish first."""
        for _ in range(self._threads - size - self._waiting_threads):
            self._threads -= 1
            self.queue.put(None)
        self.size = size

    def slot_finished(self) -> None:
        """Called by each slot after each job: ring for more before the queue runs dry."""
        if self.queue.qsize() <= self.low_water:
            self._on_room()

    @property
    def waiting(self) -> int:
        """Jobs that no slot has begun yet."""
        return max(0, self.queue.qsize() - self._turns_queued)

    @property
    def in_hand(self) -> int:
        """Jobs that wait or run here."""
        return self._handed - self.ended

    @property
    def ended(self) -> int:
        return sum(slot.ended for slot in self._slots)

    @property
    def busy_seconds(self) -> float:
        return sum(slot.busy_seconds for slot in self._slots)

    @property
    def used_seconds(self) -> float:
        """Time that slots have worked for this pool, what runs now included."""
        now = monotonic()
        running = sum(now - begun for slot in self._slots if (begun := slot.begun) is not None)
        return self.busy_seconds + running

    def running(self) -> list[Execution]:
        """What runs now."""
        return [current for slot in self._slots if (current := slot.current) is not None]

    @property
    def _waiting_threads(self) -> int:
        return 0 if self.waiter is None else 1

    def _start_threads(self) -> None:
        wanted = min(self.size, self.in_hand) + self._waiting_threads
        while self._threads < wanted:
            self._resting_slot().start(f"{self.name}-slot")
            self._threads += 1

    def _resting_slot(self) -> Slot:
        """One that was retired, or a new one."""
        for slot in self._slots:
            if slot.retired:
                return slot
        self._slots.append(Slot(self, self._cells, self._execute, self._settle))
        return self._slots[-1]
