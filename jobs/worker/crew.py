"""The children of a host: as many as were asked for, whatever happens to them.

Lives in the supervisor's main thread; only ``children`` is also read by others.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable
from functools import partial

from jobs.conf import Settings
from jobs.core.wheel import Timer, Wheel
from jobs.runtime.loop import Backoff
from jobs.runtime.process import describe_exit, resident_bytes
from jobs.worker.child_handle import ChildHandle, HeldLease, StartedLease, Suspect
from jobs.worker.leases import CrashSettler
from jobs.worker.messages import (
    AloneEnded,
    Attend,
    Buried,
    Bye,
    Drain,
    HandBack,
    Hold,
    LedgerFull,
    Look,
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
from jobs.worker.nursery import Born, Ended, Nursery
from jobs.worker.options import WorkerOptions
from jobs.worker.watchdog import Watchdog

log = logging.getLogger("jobs.worker")

LOOK_SECONDS = 0.2
"""How often it is looked at what runs, for all who go by it: the watchdog, the marker of starts, children that doze."""

WEIGH_SECONDS = 1.0
"""How often the memory of the children is looked at."""

OVERTIME_SECONDS = 20.0
"""A child that should have ended is killed after as long: its handlers or its store would not let it go."""

LAST_WORDS_SECONDS = 1.0
"""A child that ends because a handler does not stop may tell so long how its other jobs ended."""


class Crew:
    """``on_moved`` is told the id of a job whose lease has come to a process of its own: a cancel that was on its way
    to the one that held it before would not be heard. ``on_running`` is called with each look that sees a job run."""

    def __init__(
        self,
        nursery: Nursery,
        selector: selectors.BaseSelector,
        settler: CrashSettler,
        options: WorkerOptions,
        host_id: str,
        on_change: Callable[[ChildHandle], None],
        on_burial: Callable[[], object],
        on_moved: Callable[[str], object],
        on_running: Callable[[], object],
        *,
        timers: Wheel,
        settings: Settings,
    ) -> None:
        self._nursery = nursery
        self._selector = selector
        self._settler = settler
        self._options = options
        self._host_id = host_id
        self._on_change = on_change
        self._on_burial = on_burial
        self._on_moved = on_moved
        self._on_running = on_running
        self._children: dict[int, ChildHandle] = {}
        self._numbers = 0
        self._wanted = options.processes
        self._is_held = False
        self._timers = timers
        self._watchdog = Watchdog(settings, self._condemn)
        self._start_backoff = Backoff(first=0.5, cap=10.0)
        self._may_start = True
        self._end_of_patience: Timer | None = None
        self._farewell: Stop | HandBack | None = None  # said to all, and to those who come later
        self.abandoned = 0
        self.start_trouble: str | None = None
        self.children: list[ChildHandle] = []  # a new list with every change: other threads may walk the old one

    # what is asked of it

    def start(self) -> None:
        """Once the wheel turns."""
        self._watch()
        if (limit := self._options.max_rss_bytes) is not None:
            self._weigh(limit)
        self.keep_full()

    def keep_full(self) -> None:
        """Asks for what is missing. Called again and again: after each event, and at least every second."""
        self._listen()
        if self._may_start:
            serving = sum(
                (not child.is_leaving or child.is_condemned) and not child.is_alone for child in self.children
            )
            for _ in range(self._wanted - serving):
                self._conceive().send(Serve(self._is_held))

    def watch(self) -> None:
        """Looks at what runs. Again and again, by its own timer."""
        self._watchdog.look(self.children)
        busy = [child for child in self.children if child.has_started]
        for child in busy:
            if not child.report.running and not child.link.has_unsent:  # it has not noticed, and may doze
                child.send(Attend())
        if busy:
            self._on_running()

    def look(self) -> None:
        """Jobs have become ready."""
        for child in self.children:
            child.send(Look())

    def reconsider(self) -> None:
        """What people set has changed."""
        for child in self.children:
            child.send(Reconsider())

    def hold(self, is_held: bool) -> None:
        """The host was paused, or resumed; those that come later hear of it with their first word."""
        self._is_held = is_held
        for child in self.children:
            child.send(Hold(is_held))

    def drain(self) -> None:
        """Take nothing new, finish what runs, end. No replacements from now on."""
        self._wanted = 0
        for child in self.children:
            self._let_go(child, Drain())

    def stop(self, grace_seconds: float) -> None:
        """The same, but hand back what still runs after ``grace_seconds``."""
        self._wanted = 0
        self._lose_patience_after(grace_seconds + OVERTIME_SECONDS)
        self._say_to_all(Stop(grace_seconds))

    def hand_back(self) -> None:
        """Hand everything back now."""
        self._lose_patience_after(OVERTIME_SECONDS)
        self._say_to_all(HandBack())

    def dismiss(self, worker_id: str, message: Drain | Stop) -> None:
        """A person asked this one child to go: it is not replaced."""
        for child in self.children:
            if child.id == worker_id:
                if not child.is_leaving and not child.is_alone:
                    self._wanted -= 1
                self._let_go(child, message)

    @property
    def is_gone(self) -> bool:
        """Nobody is left and nobody is wanted."""
        return not self.children and self._wanted <= 0

    @property
    def is_idle(self) -> bool:
        """Every child is there and has found nothing to do."""
        children = self.children
        return len(children) >= self._wanted and all(child.report.idle for child in children)

    def has_slots(self, pool: str) -> bool:
        """Whether any child has, or may get some: of a pool that is new it has not said yet."""
        return any(child.report.slots.get(pool, 1) for child in self.children)

    # events

    def read_nursery(self) -> None:
        for event in self._nursery.read():
            match event:
                case Born(number, pid):
                    child = self._children[number]
                    child.pid = pid
                    if child.suspect is not None:
                        self._on_moved(child.suspect.lease.id)
                case Ended(number, exit_code):
                    self._bury(self._children[number], exit_code)

    def bury_all(self, reason: str) -> None:
        """The nursery died, and they with it."""
        for child in self.children:
            child.exit_code = -9
            self._take_leave(child, reason)

    def _conceive(self) -> ChildHandle:
        self._numbers += 1
        child = ChildHandle(self._numbers, f"{self._host_id}.{self._numbers}", self._nursery.request(self._numbers))
        self._selector.register(child.link, selectors.EVENT_READ, partial(self._serve_link, child))
        self._children[child.number] = child
        self.children = list(self._children.values())
        return child

    def _isolate(self, order: RunAlone, asker: ChildHandle) -> None:
        """A process of its own for a job under suspicion; its lease moves there."""
        lease = HeldLease(order.lease.route, order.lease.id, order.lease.token)
        alone = self._conceive()
        alone.suspect = Suspect(lease, asker)
        alone.open_batch(Opened(1, lease.token, lease.route, [lease.id], order.leased_at))
        asker.drop({lease})
        alone.send(order)
        if self._farewell is not None:
            self._let_go(alone, self._farewell)

    def _listen(self) -> None:
        """To what children say, and to those that have room again for what is said to them."""
        for child in self.children:
            has_unsent = child.link.has_unsent
            if has_unsent != child.is_waited_for and not child.link.closed:
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if has_unsent else 0)
                self._selector.modify(child.link, events, self._selector.get_key(child.link).data)
                child.is_waited_for = has_unsent

    def _serve_link(self, child: ChildHandle) -> None:
        if child.number not in self._children:
            return  # the nursery reported its end in the same moment, and its link was read to the end then
        child.link.push()
        for message in child.link.receive():
            self._hear(child, message)
        if child.link.closed:  # it is ending; the nursery will say how
            self._selector.unregister(child.link)

    def _hear(self, child: ChildHandle, message: Message) -> None:
        match message:
            case LedgerFull():
                child.read_ledger()
            case RunAlone():
                self._isolate(message, child)
            case Report():
                child.read_ledger()  # it has been at work: before it has to ask for room there
                is_news = message.slots != child.report.slots or message.trouble != child.report.trouble
                child.report = message
                if is_news:
                    self._on_change(child)
            case Ready():
                child.is_ready = True
                self._start_backoff.reset()
                self.start_trouble = None
                self._on_change(child)
            case Buried():
                self._on_burial()
            case Retiring(reason):
                if not child.is_alone:
                    log.info("%s retires: %s", child.id, reason)
                child.is_leaving = True
            case Bye(abandoned):
                child.has_said_bye = True
                if not child.is_condemned:
                    self.abandoned += abandoned

    def _bury(self, child: ChildHandle, exit_code: int) -> None:
        child.exit_code = exit_code
        self._hear_out(child)  # that it was ready, or was about to leave, may not have been read yet
        how = describe_exit(exit_code)
        if not child.is_condemned and (exit_code != 0 or not child.is_leaving):
            log.error("%s (pid %s) died: %s", child.id, child.pid, how)
        if not child.is_ready and not child.is_alone:  # a job alone may be quicker to kill it than that is said
            self.start_trouble = f"workers die at their start: {how}"
            self._may_start = False
            self._timers.after(self._start_backoff.next_seconds(), self._start_again)
        self._take_leave(child, f"worker died: {how}")

    def _hear_out(self, child: ChildHandle) -> None:
        """All that it has said: there will be no more."""
        if not child.link.closed:
            self._selector.unregister(child.link)
            for message in child.link.receive_rest():
                self._hear(child, message)

    def _take_leave(self, child: ChildHandle, reason: str) -> None:
        self._hear_out(child)
        del self._children[child.number]
        self.children = list(self._children.values())
        self._settler.take_over(child, reason)
        child.close()
        if child.suspect is not None:
            lease = child.suspect.lease
            child.suspect.asker.send(AloneEnded((lease.id, lease.token)))
        self._on_change(child)

    def _say_to_all(self, farewell: Stop | HandBack) -> None:
        self._farewell = farewell
        for child in self.children:
            self._let_go(child, farewell)

    def _let_go(self, child: ChildHandle, message: Drain | Stop | HandBack) -> None:
        child.is_leaving = True
        child.send(message)

    # timers

    def _start_again(self) -> None:
        self._may_start = True

    def _lose_patience_after(self, seconds: float) -> None:
        if self._end_of_patience is not None:
            self._end_of_patience.cancel()
        self._end_of_patience = self._timers.after(seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        for child in self.children:
            log.error("%s did not end in time and is killed", child.id)
            child.kill()
        self._lose_patience_after(OVERTIME_SECONDS)

    def _watch(self) -> None:
        self.watch()
        self._timers.after(LOOK_SECONDS, self._watch)

    def _condemn(self, child: ChildHandle, overdue: list[StartedLease]) -> None:
        """It ends now, with all that it runs. Its successor starts when it is gone: its slots are not free before."""
        ids = ", ".join(started.lease.id for started in overdue)
        log.warning("%s ends because what it runs does not stop: %s", child.id, ids)
        child.is_condemned = True
        self._let_go(child, HandBack(charged=False))
        self._timers.after(LAST_WORDS_SECONDS, child.kill)

    def _weigh(self, limit: int) -> None:
        for child in self.children:
            self._retire_if_too_large(child, limit)
        self._timers.after(WEIGH_SECONDS, partial(self._weigh, limit))

    def _retire_if_too_large(self, child: ChildHandle, limit: int) -> None:
        if child.is_leaving or child.pid is None:
            return
        size = resident_bytes(child.pid)
        if size > limit:
            log.info("%s retires: it uses %d MB of memory", child.id, size >> 20)
            self._let_go(child, Drain())
