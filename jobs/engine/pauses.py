"""Pausing and resuming: everything, a pool, a job type. It holds until its end, whatever restarts meanwhile.

``pause`` changes what leases may give. What they gave before may still be on its way to a slot: ``settle`` waits until
nothing of that can start any more. It asks the leases themselves and no worker, so a host that is frozen or cut off
delays it by no more than the rest of its leases, and can start nothing after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.core.clock import Clock
from jobs.core.job import Route, iso, moment
from jobs.core.pause import EVERYTHING, Pause, PauseState, Scope
from jobs.engine.batches import BATCH, batches
from jobs.engine.bundles import open_bundles
from jobs.engine.leases import Leases
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, SettingKeys, partition_keys
from jobs.store.pauses import read_pauses, tell_partitions
from jobs.store.topology import Topology

FIRST_LOOK_SECONDS = 0.01
LONGEST_LOOK_SECONDS = 0.1
"""Between two looks at what was handed out: workers say of a job that it has begun within a few tenths of a second."""


class HandedOut(NamedTuple):
    """A job that was leased and has not begun. ``deadline``: of its lease, server ms."""

    route: Route
    id: bytes
    deadline: int


class Pauses:
    """See the module. Every verb raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock, topology: Topology, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self._topology = topology
        self._leases = leases
        self._keys = SettingKeys(store.namespace)

    def state(self) -> PauseState:
        """What is paused now."""
        stored = self.stored()
        return stored.at(self.now_ms()) if stored.has_any else stored

    def stored(self) -> PauseState:
        """The same with the pauses whose time is over."""
        return read_pauses(self._store)

    def unlifted(self) -> list[tuple[Scope, Pause]]:
        """Pauses whose time is over and that no host has lifted: jobs that were set aside for them stay there."""
        stored = self.stored()
        now_ms = self.now_ms() if stored.has_any else 0
        return [(scope, pause) for scope, pause in stored.each() if now_ms >= pause.until_ms]

    def pause(self, scope: Scope, *, by: str, reason: str = "", until: datetime | None = None) -> Pause | None:
        """From when this returns no lease gives anything of it; what runs goes on. Answers the pause before it."""
        pause = Pause(by=by, at=iso(moment(self.now_ms())) or "", reason=reason, until=iso(until))
        return self._change(scope, msgspec.json.encode(pause))

    def resume(self, scope: Scope) -> Pause | None:
        """Ends the pause; answers it. No error where there is none."""
        before = self._change(scope, b"")
        if scope.kind == "type":
            self.unpark([scope.name])
        return before

    def tell(self) -> PauseState:
        """Brings every partition up to what is paused: finishes what somebody began and did not end.

        All that there are now: a pool that is made after that is told by whoever makes it.
        """
        pauses = self.stored()
        if pauses.version:
            tell_partitions(self._store, pauses, self._topology.partitions(fresh=True))
        return pauses.at(self.now_ms())

    def end_expired(self) -> list[Scope]:
        """Drops the pauses whose time is over, each only if it is still the same; which they were."""
        expired = self.unlifted()
        for scope, pause in expired:
            self._change(scope, b"", only=msgspec.json.encode(pause))
        self.unpark([scope.name for scope, _ in expired if scope.kind == "type"])
        return [scope for scope, _ in expired]

    def unpark(self, types: Iterable[str]) -> None:
        """Jobs of these types stand in line again. Whoever meets one that it does not know sets it aside once more."""
        if names := set(types):
            for route in self._topology.partitions():
                self._leases.unpark(route, names)

    def settle(self, scope: Scope, *, timeout: float | None = None) -> int:
        """Waits until nothing of a paused scope that was handed out before the pause can start any more.

        Without ``timeout`` (seconds) that is at most until the last lease of a dead host is over. Answers how many jobs
        could still start: 0, unless the time was too short. Call it after ``pause``.
        """
        return self._wait_for(scope, self._handed_out(scope), timeout)

    def settle_jobs(self, jobs: Mapping[Route, Iterable[str]], *, timeout: float | None = None) -> int:
        """The same for jobs by their ids, which no lease gives any more."""
        left = [job for route, ids in jobs.items() for job in self._unstarted(EVERYTHING, route, ids)]
        return self._wait_for(EVERYTHING, left, timeout)

    def now_ms(self) -> int:
        """The server's clock, Unix milliseconds."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    # what was handed out and has not begun

    def _wait_for(self, scope: Scope, left: list[HandedOut], timeout: float | None) -> int:
        stop_at = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_LOOK_SECONDS
        while left and (stop_at is None or time.monotonic() < stop_at):
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_SECONDS)
            left = self._look_again(scope, left)
        return len(left)

    def _change(self, scope: Scope, pause: bytes, *, only: bytes = b"") -> Pause | None:
        _, before = self._store.run("pause_set", self._keys, scope=str(scope), pause=pause, only=only)
        self.tell()
        try:
            return msgspec.json.decode(before, type=Pause) if before else None
        except msgspec.MsgspecError:
            return None

    def _handed_out(self, scope: Scope) -> list[HandedOut]:
        found: list[HandedOut] = []
        routes = self._topology.partitions(scope.name if scope.kind == "pool" else None)
        open_bundles(self._store, routes)
        for route in routes:
            keys = self._partition(route)
            # A scan meets every member that is there all the time; none can be new, since nothing is leased any more.
            leased = (member for member, _ in self._store.read(lambda client: _all_members(client, keys.leased)))  # noqa: B023
            found += self._unstarted(scope, route, leased)
        return found

    def _look_again(self, scope: Scope, left: list[HandedOut]) -> list[HandedOut]:
        still: list[HandedOut] = []
        for route in {job.route for job in left}:
            jobs = self._unstarted(scope, route, (job.id for job in left if job.route == route))
            if any(job.deadline <= self.now_ms() for job in jobs):
                # Its worker must not wake up and renew what we count as over.
                self._leases.recover(route)
            still += jobs
        return still

    def _unstarted(self, scope: Scope, route: Route, ids: Iterable[Any]) -> list[HandedOut]:
        jobs: list[HandedOut] = []
        for batch in batches(ids, limit=BATCH):
            _, *facts = self._store.run(
                "job_unstarted",
                self._partition(route),
                batch,
                given_now=self._clock.now_ms() or "",
                type=scope.name if scope.kind == "type" else "",
            )
            jobs += [HandedOut(route, facts[at], int(facts[at + 1])) for at in range(0, len(facts), 2)]
        return jobs

    def _partition(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)


def _all_members(client: Any, key: str) -> list[tuple[bytes, float]]:
    return list(client.zscan_iter(key, count=BATCH))
