"""What pools wait for at the server: calls that stand there, where they can, and what comes of those."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic

from jobs.core.job import Route
from jobs.engine import Engine, LeaseReply
from jobs.worker.intake import Intake
from jobs.worker.line import Line
from jobs.worker.naps import FULL_SECONDS, Naps
from jobs.worker.standing import ServerClock, Standing, StandingCall

STANDING = 0.9
"""A call stands at the server for as much of a nap, so that its answer comes before the nap is over."""


class Waiting:
    """Belongs to whoever leases just then. ``leasing`` is held while something may come in. ``may_stand``: whether any
    call may."""

    def __init__(
        self,
        engine: Engine,
        standing: Standing,
        clocks: Mapping[Route, ServerClock],
        intake: Intake,
        naps: Naps,
        lines: Mapping[str, Line],
        leasing: threading.Lock,
        *,
        may_stand: bool,
    ) -> None:
        self._engine = engine
        self._lines = lines
        self._may_stand = may_stand
        self._standing = standing
        self._clocks = clocks
        self._intake = intake
        self._naps = naps
        self._leasing = leasing

    def arm(self, with_room: list[Route]) -> None:
        """Whichever waiters rest; ``with_room``: the partitions whose pools can take something."""
        for line in self._lines.values():
            if not line.waiter.is_armed and (empty := self._empty_routes(line, with_room)):
                if len(empty) > 1 or not self._can_stand(empty[0]):
                    line.wait(empty, self._longest_wait(line))
                elif not self._clocks[empty[0]].is_known:
                    self._naps.wake(empty[0])  # the next look tells
                else:
                    self._stand(line, empty[0])

    def take_answers(self) -> None:
        """All that are there."""
        while (answer := self._standing.next_answer()) is not None:
            call, reply = answer
            if reply is None:
                self._recall(call)
            else:
                self._take_answer(call, reply)

    def recall_all(self) -> None:
        """Nothing comes of any call from now on."""
        for call in self._standing.calls:
            self._recall(call)

    def _empty_routes(self, line: Line, with_room: list[Route]) -> list[Route]:
        """What a pool with room may wait for. One without must not: it would take the wake-up away from others."""
        return [
            route
            for route in with_room
            if route.pool == line.slots.name and self._naps.is_asleep(route) and route not in self._naps.full
        ]

    def _longest_wait(self, line: Line) -> float:
        """Short where a partition is full: it is not waited for, and must be as soon as it is empty instead."""
        is_full = any(route.pool == line.slots.name for route in self._naps.full)
        return FULL_SECONDS if is_full else self._naps.longest

    def _can_stand(self, route: Route) -> bool:
        return (
            self._may_stand
            and self._clocks[route].is_fit
            and self._standing.may_open(route)
            and self._engine.leases.can_stand
        )

    def _stand(self, line: Line, route: Route) -> None:
        """Have the jobs that come sent here, without being asked for. Not while an answer is yet to be taken: the bell
        rings for it."""
        with self._leasing:
            if not self._standing.has_open(route) and (room := self._intake.room(route.pool)) > 0:
                call = self._standing.open(route, self._intake.limit(route, room))
                line.wait(call, STANDING * self._longest_wait(line))

    def _take_answer(self, call: StandingCall, reply: LeaseReply) -> None:
        """What has come, as far as there is still room for it, and as it is sure since when it is ours."""
        route, intake = call.route, self._intake
        with self._leasing:
            leased_at = self._clocks[route].earliest(reply.now)
            room = 0 if leased_at is None else max(0, intake.room_as_measured(route.pool))
            jobs = intake.let_through(route, call.token, reply, room)
            self._standing.close(call)  # only now: should that fail, the same answer is taken again
            intake.take(route, call.token, leased_at or monotonic(), reply.now, jobs, room)
        intake.note(route, reply)
        if leased_at is None:
            self._naps.wake(route)

    def _recall(self, call: StandingCall) -> None:
        """What it has taken goes back."""
        with self._leasing:
            reply = self._standing.recall(call)
            self._standing.close(call)
            self._intake.take(call.route, call.token, monotonic(), reply.now, reply.jobs, 0)
        self._naps.wake(call.route)
