"""A worker host: one process that keeps children running, their leases renewed, and the store tidy.

The main thread sits in a selector and does nothing that can block: it hears signals, the nursery and the children's
links. Whatever talks to the store has a thread of its own.
"""

from __future__ import annotations

import logging
import selectors
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any

from jobs.core.pause import Pause
from jobs.core.wheel import Wheel
from jobs.engine import Engine
from jobs.engine.workers import NEWS as NEWS_OF_WORKERS
from jobs.engine.workflows import NEWS as NEWS_OF_RUNS
from jobs.exceptions import SchedulerError
from jobs.runtime.loop import Loop
from jobs.runtime.mailbox import Mailbox
from jobs.runtime.process import new_host_id
from jobs.runtime.service import Service, service_loop
from jobs.runtime.signals import SignalInbox, end_forks_at_sigterm
from jobs.worker import database
from jobs.worker.burst import BurstWatch
from jobs.worker.child import Child
from jobs.worker.child_handle import ChildHandle
from jobs.worker.crew import Crew
from jobs.worker.health import HealthServer
from jobs.worker.leases import CrashSettler, Renewer, StartMarker
from jobs.worker.listener import Listener
from jobs.worker.messages import Drain, Stop
from jobs.worker.nursery import Nursery, NurseryDied
from jobs.worker.options import WorkerOptions
from jobs.worker.presence import Presence
from jobs.worker.reload import SourceWatch
from jobs.worker.unparker import Unparker

log = logging.getLogger("jobs.worker")

MOVE_SECONDS = 1.0
"""The main loop goes round at least as often."""

LIVE_SECONDS = 10.0
"""When it has not moved for as long, the host is not alive."""

MAKES_READY = ("promoted", "unparked", "recovered", "released")
"""What services count when jobs have become ready by their work."""

CHANGES_RULES = ("pushed", "cleared")
"""What they count when what people set for types or pools has changed: others may have to act on it."""

CONCERNS_CHILDREN = ("pools", "pauses")
"""News after which children must read anew what they may start, and how many at a time."""

BURIAL_SERVICES = ("undertaker", "relay")
"""Those that are to be told when a job has died."""

RUN_SERVICES = ("relay", "deadlines")
"""Those that sleep long while there is no run of a workflow."""

LAST_WORDS_SECONDS = 5.0
"""At the end: how long the store may take to hear of dead children, and that the host leaves."""


class Supervisor:
    """``run`` blocks until the host has ended and answers its exit code: 0, or 1 when attempts were abandoned."""

    def __init__(
        self, engine: Engine, options: WorkerOptions, services: Sequence[Service] = (), *, version: str = ""
    ) -> None:
        self.id = new_host_id()
        self.wants_restart = False
        self._engine = engine
        self._options = options
        self._services = services
        self._version = version
        self._stopping = False
        self._draining = False
        self._ends_because = "each of its workers was told to end"
        self._pause: Pause | None = None
        self._nursery_died = False
        self._moved_at = monotonic()
        self._loops: list[Loop] = []

    def run(self) -> int:
        database.close_all()  # nothing that is open now may be shared with children
        self._nursery = Nursery(partial(_child_main, self._options, self.id))
        self._assemble()
        try:
            self._start()
            self._live()
            self._take_leave()
        finally:
            self._close()
        return 1 if self._crew.abandoned or self._nursery_died else 0

    # what others see

    @property
    def children(self) -> list[ChildHandle]:
        return self._crew.children

    @property
    def state(self) -> str:
        """``consuming``, ``not consuming: why``, ``draining`` or ``stopping``."""
        if self._stopping:
            return "stopping"
        if self._draining:
            return "draining"
        trouble = self._trouble()
        return f"not consuming: {trouble}" if trouble else "consuming"

    def state_of(self, child: ChildHandle) -> str:
        if self._stopping:
            return "stopping"
        if child.is_leaving:
            return "draining"
        if not child.is_ready:
            return "not consuming: starting"
        if (pause := self._pause) is not None:
            return f"not consuming: {pause}"
        trouble = child.trouble
        return f"not consuming: {trouble}" if trouble else "consuming"

    def _trouble(self) -> str | None:
        if self._renewing.trouble:
            return f"leases cannot be renewed: {self._renewing.trouble}"
        if self._crew.start_trouble:
            return self._crew.start_trouble
        if (pause := self._pause) is not None:
            return str(pause)
        ready = [child for child in self.children if child.is_ready]
        if not ready:
            return "starting"
        troubles = [child.trouble for child in ready]
        return troubles[0] if all(troubles) else None

    # life

    def _assemble(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._signals = SignalInbox()
        end_forks_at_sigterm()
        self._mailbox = Mailbox()
        self._settler = CrashSettler(self._engine, self._options, self._on_burial)
        self._presence = Presence(self._engine, self, self._version, self._on_command, self._on_pause, self._enter_anew)
        self._timers = Wheel(monotonic, on_sooner=self._mailbox.ring)
        self._renewer = Renewer(self._engine, self._children_now, self._options)
        self._renewing = Loop("renewer", self._renewer.tick)
        self._crew = Crew(
            self._nursery,
            self._selector,
            self._settler,
            self._options,
            self.id,
            self._on_change,
            self._on_burial,
            self._ask_for_cancel,
            self._on_running,
            timers=self._timers,
            settings=self._engine.settings,
        )
        self._settling = Loop("settler", self._settler.tick)
        self._beating = Loop("presence", self._presence.tick)
        self._marking = Loop("marker", StartMarker(self._engine, self._children_now).tick)
        self._unparker = Unparker(self._engine, self._options.pools, self._post(self._crew.look))
        self._unparking = Loop("unparker", self._unparker.tick)
        self._loops = [self._renewing, self._settling, self._beating, self._marking, self._unparking]
        self._service_loops = [service_loop(service, self._on_service_done) for service in self._services]
        self._loops += self._service_loops
        self._engine.topology.is_told = True
        self._listening = Loop("listener", Listener(self._engine.news, self._on_news).tick)
        if self._options.burst:
            burst = BurstWatch(
                self._engine,
                self._options,
                lambda: self._crew.is_idle,
                self._crew.has_slots,
                self._post(self._on_burst_over),
            )
            self._loops.append(Loop("burst", burst.tick))
        self._health: HealthServer | None = None

    def _start(self) -> None:
        for source, react in (
            (self._signals, self._on_signals),
            (self._nursery, self._crew.read_nursery),
            (self._mailbox, self._mailbox.run_posted),
        ):
            self._selector.register(source, selectors.EVENT_READ, react)
        if self._options.health_port is not None:
            self._health = HealthServer(self._options.health_port, livez=self._livez, readyz=self._readyz)
            self._health.start()
            log.info("health on http://127.0.0.1:%d/readyz", self._health.port)
        if self._options.reload:
            SourceWatch(self._post(self._on_sources_changed)).start()
        self._timers.start()
        self._crew.start()
        for loop in (*self._loops, self._listening):
            loop.start()
        log.info("host %s serves %s; Ctrl-C or SIGTERM stops it", self.id, self._options.told)

    def _live(self) -> None:
        rest: float | None = 0.0
        try:
            while not self._crew.is_gone:
                for key, _ in self._selector.select(MOVE_SECONDS if rest is None else min(rest, MOVE_SECONDS)):
                    key.data()
                self._moved_at = monotonic()
                rest = self._timers.turn()
                self._crew.keep_full()
        except NurseryDied:
            log.critical("the process that forks the workers has died, and the workers with it: the host ends")
            self._ends_because = "the process that forks its workers was killed"
            self._nursery_died = True
            self._crew.bury_all("worker died: the process that forks the workers was killed")

    def _take_leave(self) -> None:
        """Tell the store what is left to tell, if it is there to hear it."""
        deadline = monotonic() + LAST_WORDS_SECONDS
        self._stopping = True
        self._listening.stop()  # not waited for: it may be in the midst of a long wait for news
        for loop in self._loops:
            loop.stop(max(0.0, deadline - monotonic()))
        while not self._settler.is_done and monotonic() < deadline:
            try:
                self._settler.tick()
            except SchedulerError as error:
                log.warning("jobs of dead workers could not be settled, they will be recovered: %s", error)
                break
        try:
            self._presence.leave(self._ends_because, self._crew.abandoned)
        except SchedulerError as error:
            log.warning("the host could not sign off: %s", error)

    def _close(self) -> None:
        if self._health is not None:
            self._health.close()
        self._nursery.close()
        self._selector.close()
        self._mailbox.close()
        self._signals.close()

    # reactions, all in the main thread

    def _on_signals(self) -> None:
        for number in self._signals.read():
            self.wants_restart = False
            if self._stopping and number == signal.SIGHUP:
                continue  # a terminal that closes says so more than once, and nobody has lost patience
            if self._stopping:
                log.warning("%s again: handing back what still runs", number.name)
                self._crew.hand_back()
            else:
                log.info("%s: stopping; jobs that run may finish within %g s", number.name, self._options.grace_seconds)
                self._stop(f"stopped by {number.name}")

    def _stop(self, why: str) -> None:
        self._ends_because = why
        self._stopping = True
        self._crew.stop(self._options.grace_seconds)

    def _drain(self, why: str) -> None:
        self._ends_because = why
        self._draining = True
        self._crew.drain()

    def _on_burst_over(self) -> None:
        if self._crew.is_idle:
            self._drain("its pools were empty (--burst)")

    def _on_sources_changed(self) -> None:
        if not self._stopping and not self._draining:
            self.wants_restart = True
            self._stop("its code was changed (--reload)")

    def _on_change(self, child: ChildHandle) -> None:
        """A child is ready or dead, or how it serves has changed."""
        if child.exit_code is not None:
            self._presence.forget(child)
            self._settling.nudge()
        self._beating.nudge()

    def _on_running(self) -> None:
        """The crew has seen jobs run. While the store is away the marker tries again by itself."""
        if self._marking.trouble is None:
            self._marking.nudge()

    def _on_burial(self) -> None:
        """A job has died, here or by what a service did. From any thread."""
        self._nudge(*BURIAL_SERVICES)

    def _on_service_done(self, done: dict[str, int]) -> None:
        """From a service's thread."""
        if done.get("buried"):
            self._on_burial()
        if any(done.get(what) for what in MAKES_READY):
            self._mailbox.post(self._crew.look)
        if any(done.get(what) for what in CHANGES_RULES):
            self._nudge()

    def _on_news(self, topic: str, abouts: list[str]) -> None:
        """From the listener's thread: somebody has changed something, anywhere."""
        if topic == "cancel":
            self._ask_for_cancel(*abouts)
            return
        if topic == "parked":
            self._unparker.hear(abouts)
            self._unparking.nudge()
            return
        if topic == NEWS_OF_WORKERS:
            if self.id in abouts:
                self._beating.nudge()
            return
        if topic == "topology":
            self._engine.topology.forget()
            self._mailbox.post(self._crew.look)
            return
        if topic == NEWS_OF_RUNS:
            self._nudge(*RUN_SERVICES)
            return
        if topic in CONCERNS_CHILDREN:
            self._mailbox.post(self._crew.reconsider)
        self._nudge()

    def _enter_anew(self) -> None:
        """From the presence thread: the store has lost this host, and with it what else this host had told it."""
        log.warning(
            "the store knows %s no more: was it emptied? Its pools, limits and schedules are entered anew", self.id
        )
        self._engine.topology.forget()
        self._mailbox.post(self._crew.reconsider)
        self._nudge()

    def _nudge(self, *services: str) -> None:
        """These, or all."""
        for loop in self._service_loops:
            if not services or loop.name in services:
                loop.nudge()

    def _ask_for_cancel(self, *job_ids: str) -> None:
        """From any thread: whether these jobs were asked to stop."""
        self._renewer.hear(job_ids)
        self._renewing.nudge()

    def _on_command(self, worker_id: str, command: str) -> None:
        """From the presence thread: what somebody told a worker to do."""
        log.info("%s was told to %s", worker_id, command)
        if worker_id == self.id:
            end, past = (self._drain, "drained") if command == "drain" else (self._stop, "stopped")
            self._mailbox.post(partial(end, f"{past} on demand"))
        else:
            message = Drain() if command == "drain" else Stop(self._options.grace_seconds)
            self._mailbox.post(partial(self._crew.dismiss, worker_id, message))

    def _on_pause(self, pause: Pause | None) -> None:
        """From the presence thread: somebody has paused this host, or its pause is over."""
        log.info("%s is %s", self.id, pause or "resumed")
        self._pause = pause
        self._mailbox.post(partial(self._crew.hold, pause is not None))

    def _post(self, action: Callable[[], object]) -> Callable[[], None]:
        return lambda: self._mailbox.post(action)

    def _children_now(self) -> list[ChildHandle]:
        return self._crew.children

    # health

    def _livez(self) -> tuple[bool, dict[str, Any]]:
        silent = monotonic() - self._moved_at
        return silent < LIVE_SECONDS, {"id": self.id, "seconds_since_last_move": round(silent, 3)}

    def _readyz(self) -> tuple[bool, dict[str, Any]]:
        state = self.state
        return state == "consuming", {
            "id": self.id,
            "state": state,
            "workers": [
                {"id": child.id, "pid": child.pid, "state": self.state_of(child), "running": child.report.running}
                for child in self.children
            ],
            "trouble": {loop.name: loop.trouble for loop in self._loops if loop.trouble},
        }


def _child_main(
    options: WorkerOptions, host_id: str, number: int, link: socket.socket, ledger: socket.socket, cells_fd: int
) -> int:
    return Child(number, link, ledger, cells_fd, options, host_id).run()
