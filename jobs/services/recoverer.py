"""Takes back jobs whose lease ran out: their worker died, froze or was cut off."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from jobs.core.clock import uptime
from jobs.core.job import Route
from jobs.engine import Engine, RecoverReply
from jobs.runtime.announcing import announce_burials

IDLE_MARGIN_SECONDS = 3.0
"""Where nothing is leased, the next lease is a whole lease away; a little later is soon enough."""

BATCH = 100
"""Jobs in one call: each of them may have a history to be written."""

MARGIN_SECONDS = 0.05
"""After a deadline before we look: a renewal may be on its way."""


class Recoverer:
    """Sleeps until the first lease of any partition can run out. Where none is leased, one question serves them all."""

    name = "recoverer"

    def __init__(self, engine: Engine, lease_seconds: float, *, elapsed: Callable[[], float] = uptime) -> None:
        self._engine = engine
        self._elapsed = elapsed
        self._lease_seconds = lease_seconds
        self._visited_at: dict[Route, float] = {}
        self._due_at: dict[Route, float] = {}
        self._idle: set[Route] = set()  # nothing was leased

    @property
    def every(self) -> float:
        now = monotonic()
        return max(0.0, min((due - now for due in self._due_at.values()), default=self._lease_seconds))

    def tick(self) -> dict[str, int]:
        totals = {"recovered": 0, "released": 0, "buried": 0}
        routes = self._engine.topology.partitions()
        self._forget_others(set(routes))
        self._pass_over_idle()
        for route in routes:
            if monotonic() >= self._due_at.get(route, 0.0):
                self._recover_all(route, totals)
        return totals

    def _pass_over_idle(self) -> None:
        """Partitions in which nothing was leased, once the look at one of them is due."""
        is_due = any(monotonic() >= self._due_at[route] for route in self._idle)
        if is_due and self._engine.leases.none_is_leased(sorted(self._idle)):
            self._due_at.update(dict.fromkeys(self._idle, monotonic() + self._lease_seconds + IDLE_MARGIN_SECONDS))

    def _recover_all(self, route: Route, totals: dict[str, int]) -> None:
        while True:
            reply = self._recover(route)
            totals["recovered"] += reply.recovered
            totals["released"] += reply.released
            totals["buried"] += reply.buried
            announce_burials(self._engine, reply.buried_ids)
            if reply.recovered + reply.released < BATCH:
                break
        self._due_at[route] = monotonic() + self._wait(reply)
        (self._idle.discard if reply.held or reply.next_deadline else self._idle.add)(route)

    def _recover(self, route: Route) -> RecoverReply:
        called_at = self._elapsed()
        last = self._visited_at.get(route)
        # What passed on our own clock: the server's must not have moved much further, or it jumped.
        elapsed = None if last is None else int((called_at - last) * 1000)
        reply = self._engine.leases.recover(
            route, limit=BATCH, elapsed_ms=elapsed, lease_ms=int(self._lease_seconds * 1000)
        )
        self._visited_at[route] = called_at
        return reply

    def _wait(self, reply: RecoverReply) -> float:
        if reply.held:
            return self._lease_seconds
        if reply.next_deadline is None:
            return self._lease_seconds + IDLE_MARGIN_SECONDS
        until_deadline = (reply.next_deadline - reply.now) / 1000 + MARGIN_SECONDS
        return min(self._lease_seconds, max(MARGIN_SECONDS, until_deadline))

    def _forget_others(self, routes: set[Route]) -> None:
        self._idle &= routes
        for memory in (self._visited_at, self._due_at):
            for gone in memory.keys() - routes:
                del memory[gone]
