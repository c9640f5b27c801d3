"""Leases jobs for the slots of a child: as many as they can use soon, from every partition in turn.

It waits in one place for everything that may let it go on (room in a slot, news from the server, a due time, the end):
its bell. While a partition is known to be empty it is asleep, and costs the server nothing. A job that ends this sleep
is leased by the thread that was woken for it: waking another would take its time.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from time import monotonic

from jobs.core.job import Route
from jobs.engine import Engine, new_token
from jobs.runtime.loop import ENVIRONMENT_ERRORS, Backoff
from jobs.worker.batch import Batch
from jobs.worker.bell import Bell
from jobs.worker.cells import Cells
from jobs.worker.flusher import Flusher
from jobs.worker.intake import UNFLUSHED_LIMIT, Intake
from jobs.worker.line import STALL_SECONDS, Line
from jobs.worker.naps import Naps
from jobs.worker.options import WorkerOptions
from jobs.worker.permits import Permits
from jobs.worker.shares import Shares
from jobs.worker.sizes import Sizes
from jobs.worker.slots import PoolSlots
from jobs.worker.standing import ServerClock, Standing
from jobs.worker.waiter import Waiter
from jobs.worker.waiting import Waiting

log = logging.getLogger("jobs.worker")

IDLE_SECONDS = 20.0
"""A partition that was found empty is looked at again after as long, should a wake-up have been lost."""

BURST_IDLE_SECONDS = 0.2
"""The same for a host that is to exit when there is nothing to do."""

REFRESH_SECONDS = 20.0
"""New pools, new partitions and changed slots are noticed within as long, should their news be lost."""


class Fetcher(threading.Thread):
    """One for each child. ``announce`` writes a batch into the ledger before any of its jobs can start."""

    def __init__(
        self,
        engine: Engine,
        options: WorkerOptions,
        worker_id: str,
        *,
        cells: Cells,
        flusher: Flusher,
        permits: Permits,
        new_pool: Callable[[str, int, Callable[[], None]], PoolSlots],
        announce: Callable[[Batch, list[str]], None],
        on_spent: Callable[[], None],
    ) -> None:
        super().__init__(name="fetcher", daemon=True)
        self._engine = engine
        self._options = options
        self._worker_id = worker_id
        self._flusher = flusher
        self._permits = permits
        self._new_pool = new_pool
        self._sizes = Sizes(engine, options)
        self._bell = Bell()
        self._woken: set[Route] = set()  # others add, this thread empties; both in one operation
        self._at_work = threading.Lock()  # whoever holds it may change what is below
        self._leasing = threading.Lock()
        self._quiet = False
        self._is_held = False
        self._routes: list[Route] = []
        self._turn = 0
        self._refresh_at = 0.0
        self._may_have_more = False  # others set it, this thread takes it back before it reads what there is
        self._is_outdated = False
        self._shares = Shares(options.weights) if options.shared_slots is not None else None
        self._lines: dict[str, Line] = {}
        self._naps = Naps(BURST_IDLE_SECONDS if options.burst else IDLE_SECONDS)
        self._standing = Standing(engine, worker_id, options.lease_ms)
        self._clocks: defaultdict[Route, ServerClock] = defaultdict(ServerClock)
        self._grants: dict[Route, tuple[str, float]] = {}  # sent and not answered yet: token, when first sent
        self._intake = Intake(
            options,
            self._lines,
            self._naps,
            is_open=lambda: not (self._quiet or self._is_held),
            cells=cells,
            flusher=flusher,
            permits=permits,
            announce=announce,
            on_spent=on_spent,
        )
        self._waiting = Waiting(
            engine,
            self._standing,
            self._clocks,
            self._intake,
            self._naps,
            self._lines,
            self._leasing,
            may_stand=self._shares is None,
        )
        self._backoff = Backoff()
        self._trouble: str | None = None

    # what others may ask

    @property
    def pools(self) -> list[PoolSlots]:
        return [line.slots for line in list(self._lines.values())]

    @property
    def in_hand(self) -> int:
        return self._intake.in_hand

    @property
    def is_idle(self) -> bool:
        """Every served partition was found empty or paused, and nothing is left to do or to report."""
        served = [route for route in self._routes if self._lines[route.pool].slots.size]
        asleep = bool(self._routes) and self._naps.are_known(served)
        return asleep and self.in_hand == 0 and self._flusher.backlog == 0

    @property
    def trouble(self) -> str | None:
        """Why nothing is consumed, when nothing is."""
        if self._trouble:
            return self._trouble
        if self._routes and self._naps.paused.issuperset(self._routes):
            return "paused"
        return None

    def look(self) -> None:
        """Ask every partition again, as if the server had woken us for it; also of pools that are new."""
        self._may_have_more = True
        self._woken.update(self._routes)
        self._bell.ring()

    def settled(self, routes: Iterable[Route]) -> None:
        """From the flusher: jobs of these partitions have ended, and the store knows. Where it was full is room."""
        if not self._naps.full.isdisjoint(routes):
            self._woken.update(routes)
            self._bell.ring()
        elif self._permits.are_needed:
            self._bell.ring()  # a line may move sooner than was known

    def reconsider(self) -> None:
        """Settings or pauses have changed: read them anew, and give back what no slot has begun."""
        self._is_outdated = True
        self.look()

    def hold(self, is_held: bool) -> None:
        """While it is held it leases nothing, and what no slot has begun goes back; what runs goes on."""
        self._is_held = is_held
        self.reconsider()

    def quiesce(self) -> None:
        """Begin no lease call any more; some may be under way until ``is_quiet``."""
        self._quiet = True
        self._bell.ring()

    @property
    def is_quiet(self) -> bool:
        """Nothing more will come in."""
        if not self._quiet or not self._leasing.acquire(blocking=False):
            return False
        try:
            return not self._standing.is_open  # whoever leases opens calls, and takes what they have brought
        finally:
            self._leasing.release()

    def hand_back(self) -> None:
        """Give back whatever no slot has begun. From the fetcher itself, or when it is quiet."""
        for pool in self.pools:
            self._intake.hand_back(pool)

    # the thread

    def run(self) -> None:
        while not self._quiet:
            try:
                with self._at_work:
                    rest_seconds = self._go_round()
                self._trouble = None
                self._backoff.reset()
            except Exception as error:
                self._stumble(error)
            else:
                self._rest(rest_seconds)
        while not self._has_recalled():
            pass

    def _has_recalled(self) -> bool:
        """Whether nothing comes of any standing call any more. A waiter's thread that was at work when we became quiet
        may have opened one."""
        try:
            with self._at_work:
                if self._standing.is_open:
                    self._waiting.recall_all()
        except Exception as error:
            self._stumble(error)
            return False
        return True

    def _go_round(self) -> float:
        """Does all that there is to do now; how many seconds to rest after it."""
        while self._woken:
            self._naps.wake(self._woken.pop())
        if self._is_held:
            self._waiting.recall_all()
        self._waiting.take_answers()
        self._refresh()
        self._permits.turn()
        self._naps.prolong(self._engine.leases.none_waits)
        if self._lease_from_each():
            return 0.0
        self._return_stalled()
        with_room = self._with_room()
        self._waiting.arm(with_room)
        return self._seconds_to_rest(with_room)

    def _rest(self, seconds: float) -> None:
        if seconds > 0:
            self._bell.wait(seconds)

    def _with_room(self) -> list[Route]:
        return [route for route in self._routes if self._intake.room(route.pool) > 0]

    def _arm(self) -> None:
        """From the thread that has the turn to wait. Whatever keeps it from that, the fetcher comes to it."""
        if not self._at_work.acquire(blocking=False):
            return
        try:
            self._waiting.arm(self._with_room())
        except Exception:
            log.debug("the fetcher tries again", exc_info=True)
        finally:
            self._at_work.release()

    def _lease_woken(self, route: Route) -> None:
        """From a waiter's thread: the partition has something. Should that fail, the fetcher finds it awake. The wait
        had begun before the room went to another partition, or before we were told to take nothing: another may."""
        if self._intake.room_as_measured(route.pool) <= 0:
            self._woken.add(route)
            self._pass_on(route)
            return
        if self._shares is not None or not self._at_work.acquire(blocking=False):
            self._woken.add(route)
            return
        try:
            self._naps.wake(route)
            if (room := self._intake.room(route.pool)) > 0:
                self._lease(route, room)
        except Exception:
            log.debug("the fetcher tries again", exc_info=True)
        finally:
            self._at_work.release()

    def _answered(self) -> bool:
        """From a waiter's thread: a standing call has an answer; whether there is more to do in a slot now. Should
        taking it fail, the fetcher tries again."""
        if not self._at_work.acquire(blocking=False):
            return False
        before = self._intake.jobs_taken
        try:
            self._waiting.take_answers()
        except Exception:
            log.debug("the fetcher tries again", exc_info=True)
        finally:
            self._at_work.release()
        return self._intake.jobs_taken > before

    def _pass_on(self, route: Route) -> None:
        try:
            self._engine.leases.pass_on(route)
        except Exception:
            log.debug("a wake-up is lost, others look by themselves in a while", exc_info=True)

    def _waiter_ended(self, doubtful: Iterable[Route]) -> None:
        """From a waiter's thread, at the end of each wait; of the ``doubtful`` partitions a wake-up may be lost."""
        self._woken.update(doubtful)
        self._bell.ring()

    def _stumble(self, error: Exception) -> None:
        expected = isinstance(error, ENVIRONMENT_ERRORS)
        if self._trouble is None or not expected:
            log.warning("cannot lease jobs: %s", error, exc_info=not expected)
        self._trouble = str(error)
        self._bell.wait(self._backoff.next_seconds())

    def _refresh(self) -> None:
        """Follow new pools, new partitions and changed slots."""
        if not self._may_have_more and monotonic() < self._refresh_at:
            return
        self._may_have_more, self._refresh_at = False, 0.0  # due yet, should it fail
        if self._is_outdated:
            self._is_outdated = False
            self.hand_back()
        topology = self._engine.topology
        for name, size in self._sizes.pools(topology.pools(fresh=True)):
            topology.ensure(name)  # each time: a store that was emptied knows it no more
            self._resize(self._line(name), size)
        self._routes = [route for name in self._lines for route in topology.partitions(name)]
        self._refresh_at = monotonic() + REFRESH_SECONDS

    def _resize(self, line: Line, size: int) -> None:
        if size < line.slots.size:
            self._intake.hand_back(line.slots)  # or it would be begun before the slots that are too many have gone
        line.resize(size)

    def _line(self, name: str) -> Line:
        if name not in self._lines:
            waiter = Waiter(
                self._engine,
                self._standing,
                on_turn=self._arm,
                on_woken=self._lease_woken,
                on_answer=self._answered,
                on_end=self._waiter_ended,
            )
            self._lines[name] = Line(self._new_pool(name, 0, self._bell.ring), waiter)
        return self._lines[name]

    # leasing

    def _lease_from_each(self) -> bool:
        """One call to each partition that may have something and whose pool has room; whether any had."""
        self._turn += 1
        if self._shares is not None:
            return self._lease_by_turns(self._shares)
        took = False
        for position in range(len(self._routes)):
            route = self._routes[(self._turn + position) % len(self._routes)]
            if not self._naps.is_asleep(route) and (room := self._intake.room(route.pool)) > 0:
                took |= self._lease(route, room)
        return took

    def _lease_by_turns(self, shares: Shares) -> bool:
        """The same where pools share the slots: the one that is behind comes first."""
        awake = [
            route for route in self._routes if not self._naps.is_asleep(route) and self._intake.room(route.pool) > 0
        ]
        used = {route.pool: self._lines[route.pool].slots.used_seconds for route in awake}
        took = False
        for pool, number in shares.turns(used, (self._options.shared_slots or 0) - self.in_hand):
            routes = [route for route in awake if route.pool == pool]
            route = routes[self._turn % len(routes)]
            if (room := min(number, self._intake.room(pool))) > 0:
                took |= self._lease(route, room)
        return took

    def _lease(self, route: Route, limit: int) -> bool:
        with self._leasing:
            if self._quiet:
                return False
            token, sent_at = self._grant(route)
            reply = self._engine.leases.lease(
                route,
                worker=self._worker_id,
                token=token,
                limit=self._intake.limit(route, limit),
                lease_ms=self._options.lease_ms,
            )
            self._clocks[route].note(reply.now, sent_at)
            jobs = self._intake.let_through(route, token, reply, limit)
            del self._grants[route]  # only now: should that fail, the same grant is asked for again
            self._intake.take(route, token, sent_at, reply.now, jobs, limit)
        self._intake.note(route, reply)
        return bool(reply.jobs)

    def _grant(self, route: Route) -> tuple[str, float]:
        """The token to ask with: one whose answer was lost finds the jobs it was given, while their lease lasts."""
        token, sent_at = self._grants.get(route, ("", 0.0))
        if not token or monotonic() > sent_at + self._options.lease_seconds:
            token, sent_at = new_token(), monotonic()
        self._grants[route] = (token, sent_at)
        return token, sent_at

    def _seconds_to_rest(self, with_room: list[Route]) -> float:
        """Until the first partition that we could lease from may have something again."""
        rest = min(self._naps.seconds_until_any(with_room), self._refresh_at - monotonic())
        if (turn := self._permits.seconds_to_turn()) is not None:
            rest = min(rest, turn)
        if any(line.slots.waiting for line in self._lines.values()) or self._flusher.backlog > UNFLUSHED_LIMIT:
            rest = min(rest, STALL_SECONDS / 2)
        return max(0.0, rest)

    def _return_stalled(self) -> None:
        for line in self._lines.values():
            if line.has_stalled():
                self._intake.hand_back(line.slots)
