"""Lease calls that stand at the server: sent in advance, and carried out there in the moment that work comes.

So a job that comes to an idle worker is on its way to it at once; nobody has to be woken first, to ask for it then.

Two things are harder than for a call whose answer follows it. It is not known when it was carried out, and a lease
counts from then: the server's clock tells, by what it showed at the last call of the ordinary kind. And it cannot be
unsaid: it is recalled, which brings back what it has taken, or makes sure that it takes nothing any more.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import NamedTuple

from jobs.core.job import Route
from jobs.engine import Engine, LeaseReply, new_token
from jobs.store.clients import LONGEST_WAIT

CLOCK_SECONDS = 60.0
"""What is known of the server's clock is good for as long: two clocks drift apart by a few ms in it."""

DRIFT_SECONDS = 0.1
"""More than that. A lease is believed to be older by as much."""

FRESH_SECONDS = 1.0
"""An answer whose lease is older, or has yet to begin, is not believed: this process stood still, or a clock moved."""


LOST_SECONDS = LONGEST_WAIT
"""After an answer that was lost none is sent: the first may stand at the server yet, on a connection that only we know
to be broken. Its token is remembered as one that takes nothing, until another call stands in its place."""


class StandingCall(NamedTuple):
    """Takes up to ``limit`` jobs of ``route`` under ``token``."""

    route: Route
    token: str
    limit: int


class ServerClock:
    """What the server's clock shows at a monotonic moment, as far as one exchange can tell."""

    def __init__(self) -> None:
        self._seen: tuple[int, float] | None = None
        self._unfit_until = 0.0

    @property
    def is_fit(self) -> bool:
        return monotonic() >= self._unfit_until

    @property
    def is_known(self) -> bool:
        return self._seen is not None and monotonic() < self._seen[1] + CLOCK_SECONDS

    def note(self, now_ms: int, sent_at: float) -> None:
        """It showed this to a question that was sent at that monotonic moment, and has just been answered. A slow
        answer tells too little; where nothing better is known the clock is unfit for a while, and not asked again at
        once."""
        if monotonic() < sent_at + FRESH_SECONDS / 2:
            self._seen = now_ms, sent_at
        elif not self.is_known:
            self._unfit_until = monotonic() + CLOCK_SECONDS

    def earliest(self, now_ms: int) -> float | None:
        """The latest monotonic moment of which it is sure that the clock did not show this before; None where what it
        shows makes no sense. Then it is unfit for a while."""
        if self._seen is not None:
            noted_ms, sent_at = self._seen
            moment = sent_at + (now_ms - noted_ms) / 1000 - DRIFT_SECONDS
            if -DRIFT_SECONDS <= monotonic() - moment - DRIFT_SECONDS <= FRESH_SECONDS:
                return min(moment, monotonic())
        self._unfit_until = monotonic() + CLOCK_SECONDS
        return None


class Standing:
    """The standing calls of one worker, at most one for each partition. ``ask`` belongs to the thread that waits, all
    else to the fetcher."""

    def __init__(self, engine: Engine, worker_id: str, lease_ms: int) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._lease_ms = lease_ms
        self._open: dict[Route, StandingCall] = {}
        self._lost_at: dict[Route, float] = {}
        self._answers: deque[tuple[StandingCall, LeaseReply | None]] = deque()

    @property
    def is_open(self) -> bool:
        """Whether jobs may still come of any."""
        return bool(self._open)

    @property
    def calls(self) -> list[StandingCall]:
        """Those of which jobs may still come."""
        return list(self._open.values())

    def has_open(self, route: Route) -> bool:
        """Whether jobs may still come of a call for this partition: its answer may be here, and not be taken yet."""
        return route in self._open

    def may_open(self, route: Route) -> bool:
        """Whether no call that was lost can stand any more."""
        return monotonic() >= self._lost_at.get(route, -LOST_SECONDS) + LOST_SECONDS

    def open(self, route: Route, limit: int) -> StandingCall:
        """A call that may be asked from now on. Not while the partition has an open one: what that brings would be
        lost."""
        self._open[route] = call = StandingCall(route, new_token(), limit)
        return call

    def close(self, call: StandingCall) -> None:
        """What it took is in hand, or has gone back. What an answer brings that comes later goes back."""
        del self._open[call.route]
        if self._answers and self._answers[0][0] is call:
            self._answers.popleft()

    def ask(self, call: StandingCall, timeout: float) -> None:
        """Waits at the server until the call is carried out, at the latest after ``timeout`` seconds. However it ends,
        there is an answer then."""
        reply = None
        try:
            reply = self._engine.leases.wait_and_lease(
                call.route,
                timeout,
                worker=self._worker_id,
                token=call.token,
                limit=call.limit,
                lease_ms=self._lease_ms,
            )
        except BaseException:
            self._lost_at[call.route] = monotonic()
            raise
        finally:
            self._answers.append((call, reply))

    def next_answer(self) -> tuple[StandingCall, LeaseReply | None] | None:
        """The same until its call is closed. A reply of None is lost: the call is to be recalled."""
        while self._answers:
            call, reply = self._answers[0]
            if self._open.get(call.route) is call:
                return call, reply
            if reply is not None and reply.jobs:
                self._give_back(call, reply)
            self._answers.popleft()
        return None

    def _give_back(self, call: StandingCall, reply: LeaseReply) -> None:
        """It was recalled, and took something all the same: the server was emptied or replaced in between, and forgot
        that it was. Nothing happens to what has gone back already."""
        self._engine.leases.release(call.route, [(job.id, job.token) for job in reply.jobs])

    def recall(self, call: StandingCall) -> LeaseReply:
        """What it has taken; it takes nothing from now on. The call is still open, should this fail."""
        return self._engine.leases.recall(call.route, worker=self._worker_id, token=call.token)
