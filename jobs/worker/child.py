"""A worker: the process that leases jobs and runs them.

Threads: the main one runs the event loop for async handlers; ``fetcher`` brings work, the slots do it (and one of each
pool waits for it at the server), ``flusher`` reports it, and ``control`` listens to the supervisor and leads the way
out.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any

from jobs.core.wheel import Wheel
from jobs.engine import Engine, get_engine
from jobs.exceptions import LeaseLost
from jobs.runtime.mailbox import Mailbox
from jobs.runtime.signals import end_forks_at_sigterm, wake_at_shutdown
from jobs.worker.batch import Batch, Marks
from jobs.worker.cells import Cells
from jobs.worker.errand import Errand
from jobs.worker.executor import Execution, Executor
from jobs.worker.fetcher import Fetcher
from jobs.worker.flusher import Flusher
from jobs.worker.isolation import Isolation
from jobs.worker.ledger import Pen
from jobs.worker.link import Link
from jobs.worker.messages import (
    AloneEnded,
    Buried,
    Bye,
    CancelRequested,
    Closed,
    Drain,
    HandBack,
    Hold,
    LedgerFull,
    Look,
    Lost,
    Message,
    Opened,
    Ready,
    Reconsider,
    Report,
    Retiring,
    RunAlone,
    Serve,
    Stop,
)
from jobs.worker.options import WorkerOptions
from jobs.worker.permits import Permits
from jobs.worker.slots import PoolSlots
from jobs.worker.source import Source
from jobs.worker.watch import Watch

log = logging.getLogger("jobs.worker")

TICK_SECONDS = 0.2
"""How often leases are held against the clock and the supervisor is told what changed."""

DOZE_SECONDS = 1.0
"""The same after as long without anything to do. A message ends it; the supervisor sends one when a job has begun."""

SWITCH_SECONDS = 0.0003
"""How long a running handler may keep the interpreter's lock from the threads that fetch and report. They ask for it
several times a call, after each wait for the server, and the slots run dry behind them."""

FLUSH_SECONDS = 10.0
"""On the way out: how long the store may take to hear the last results."""

LEASE_CALL_SECONDS = 12.0
"""On the way out: how long a lease call that is under way may take to answer. What it brings is handed back."""


class Child:
    """``run`` returns the exit code, or the process ends inside it."""

    def __init__(
        self,
        number: int,
        link: socket.socket,
        ledger: socket.socket,
        cells_fd: int,
        options: WorkerOptions,
        host_id: str,
    ) -> None:
        engine = get_engine()
        self._options = options
        self._has_undertaker = bool(engine.settings.on_dead)
        self._link = Link.of_child(link)
        self._ledger = Pen(ledger, on_full=lambda: self._link.send(LedgerFull()))
        self._cells = Cells(cells_fd)
        self._marks = Marks()
        self._loop = asyncio.new_event_loop()
        self._timers = Wheel(monotonic)  # driven by the control thread, which alone arms them
        self._watch = Watch(self._timers, self._running, self._marks, cancel_grace=engine.settings.cancel_grace)
        self._permits = Permits(engine)
        self._flusher = Flusher(
            engine,
            permits=self._permits,
            marks=self._marks,
            on_closed=self._on_closed,
            on_settled=lambda routes: self._source.settled(routes),
            on_failure=lambda: os._exit(1),
            on_burial=self._on_burial,
        )
        self._isolation = Isolation(self._link.send)
        self._mailbox = Mailbox()
        self._retire_reason: str | None = None
        self._leave_by: float | None = None  # set: on the way out; when to hand back what still runs
        self._quiet_by = 0.0
        self._last_report: Report | None = None
        self._stirred_at = monotonic()
        self._abandoned = 0
        self._charges = True  # what is given up then counts as an attempt
        order, *self._early = self._first_messages()
        isolation = None if isinstance(order, RunAlone) else self._isolation
        self._executor = Executor(
            engine.settings,
            self._loop,
            self._marks,
            self._flusher.reports,
            self._flusher.herald,
            self._flusher.messenger,
            isolation,
        )
        self._source = self._errand(order) if isinstance(order, RunAlone) else self._fetcher(engine, number, host_id)
        if isinstance(order, Serve) and order.is_held:
            self._source.hold(True)

    def _first_messages(self) -> list[Any]:
        """At least one: what this process is for."""
        while not (messages := self._link.receive()):
            if self._link.closed:
                sys.exit(1)
        return messages

    def _fetcher(self, engine: Engine, number: int, host_id: str) -> Source:
        return Fetcher(
            engine,
            self._options,
            f"{host_id}.{number}",
            cells=self._cells,
            flusher=self._flusher,
            permits=self._permits,
            new_pool=self._new_pool,
            announce=self._announce,
            on_spent=lambda: self._retire(f"it has run {self._options.max_jobs} jobs"),
        )

    def _errand(self, order: RunAlone) -> Source:
        self._marks.open(order.lease.token)
        return Errand(
            order,
            lease_seconds=self._options.lease_seconds,
            cells=self._cells,
            new_pool=self._new_pool,
            on_done=lambda: self._retire("its one job has ended"),
        )

    def run(self) -> int:
        sys.setswitchinterval(SWITCH_SECONDS)
        wake_at_shutdown()  # a terminal tells all of its processes; the supervisor tells us what to do
        signal.signal(signal.SIGTERM, lambda *_: self._retire("it was sent SIGTERM"))
        end_forks_at_sigterm()
        faulthandler.register(signal.SIGQUIT)  # prints the stack of every thread
        asyncio.set_event_loop(self._loop)
        self._flusher.start()
        self._source.start()
        threading.Thread(target=self._control, name="control", daemon=True).start()
        self._loop.run_forever()
        return 0

    # wiring

    def _new_pool(self, name: str, size: int, on_room: Any) -> PoolSlots:
        return PoolSlots(
            name,
            size,
            cells=self._cells,
            execute=self._executor.run,
            settle=self._flusher.settle,
            on_room=on_room,
            on_failure=lambda: os._exit(1),
        )

    def _announce(self, batch: Batch, ids: list[str]) -> None:
        self._marks.open(batch.token)
        self._ledger.write(Opened(batch.number, batch.token, batch.route, ids, batch.leased_at))

    def _on_closed(self, batch: int) -> None:
        self._ledger.write(Closed(batch))

    def _on_burial(self) -> None:
        if self._has_undertaker:
            self._link.send(Buried())

    def _retire(self, reason: str) -> None:
        self._retire_reason = self._retire_reason or reason
        self._mailbox.ring()

    # the control thread

    def _control(self) -> None:
        ears: list[Link | Mailbox] = [self._link, self._mailbox]
        try:
            self._timers.start()
            self._link.send(Ready())
            for message in self._early:
                self._obey(message)
            while True:
                rest, tick = self._timers.turn(), self._tick_seconds
                readable, _, _ = select.select(ears, [], [], tick if rest is None else min(rest, tick))
                if self._mailbox in readable:
                    self._mailbox.run_posted()
                for message in self._link.receive() if self._link in readable else ():
                    self._obey(message)
                if self._link.closed:
                    os._exit(1)  # no supervisor: nobody renews our leases
                self._watch.look()
                if not self._source.in_hand:
                    self._marks.forget_all()
                has_news = self._report()
                self._go_on_leaving()
                if readable or has_news or not self._may_doze:
                    self._stirred_at = monotonic()
        except BaseException:
            log.exception("the control thread failed; the worker ends")
            self._exit(1)

    @property
    def _tick_seconds(self) -> float:
        return DOZE_SECONDS if monotonic() > self._stirred_at + DOZE_SECONDS else TICK_SECONDS

    @property
    def _may_doze(self) -> bool:
        """There is nothing to hold against the clock, and nothing that the supervisor waits to be told."""
        return self._source.is_idle and self._source.trouble is None and self._leave_by is None

    def _obey(self, message: Message) -> None:
        match message:
            case Look():
                self._source.look()
            case Reconsider():
                self._source.reconsider()
            case Hold(is_held):
                self._source.hold(is_held)
            case AloneEnded(lease):
                self._isolation.ended(lease)
            case Lost(leases):
                self._marks.lost.update(self._marks.in_hand(leases))
            case CancelRequested(leases):
                self._marks.cancelled.update(self._marks.in_hand(leases))
            case Drain():
                self._begin_leaving(inf)
            case Stop(grace_seconds):
                self._begin_leaving(monotonic() + grace_seconds)
            case HandBack(charged):
                self._charges = charged
                self._begin_leaving(monotonic())

    def _running(self) -> list[Execution]:
        return [execution for pool in self._source.pools for execution in pool.running()]

    def _report(self) -> bool:
        """Whether there was anything new to tell."""
        pools = self._source.pools
        report = Report(
            slots={pool.name: max(pool.size, len(pool.running())) for pool in pools},
            running=len(self._running()),
            ended=sum(pool.ended for pool in pools),
            trouble=self._source.trouble or self._flusher.trouble,
            idle=self._source.is_idle,
        )
        if report == self._last_report:
            return False
        self._last_report = report
        self._link.send(report)
        return True

    # the way out

    def _begin_leaving(self, leave_by: float) -> None:
        if self._leave_by is None:
            self._leave_by = inf
            self._quiet_by = monotonic() + LEASE_CALL_SECONDS
            self._source.quiesce()
        self._leave_by = min(self._leave_by, leave_by)

    def _go_on_leaving(self) -> None:
        if self._retire_reason is not None and self._leave_by is None:
            self._link.send(Retiring(self._retire_reason))
            self._begin_leaving(inf)
        if self._leave_by is None:
            return
        if not self._source.is_quiet and monotonic() < self._quiet_by:
            return
        self._source.hand_back()
        if self._source.in_hand and monotonic() < self._leave_by:
            return
        self._abandon_running()
        self._exit(0)

    def _abandon_running(self) -> None:
        """Give up what runs. What stops at once goes back by itself; the supervisor hands back the rest when this
        process, and the handlers in it, are gone."""
        for execution in self._running():
            lease = execution.lease
            self._marks.abandoned[lease.id, lease.token] = self._charges
            execution.ask_to_stop(LeaseLost("The worker is stopping; the job goes back and will run again."))
            self._abandoned += 1

    def _exit(self, code: int) -> None:
        """Ends the process under threads that may be anywhere: there is nothing left to tidy up."""
        try:
            self._flusher.finish(FLUSH_SECONDS)
            self._link.send(Bye(self._abandoned))
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):  # nobody reads it any more, or a handler has closed it
                    stream.flush()
        finally:
            os._exit(code)
