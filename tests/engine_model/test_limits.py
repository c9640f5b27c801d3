"""Random lives of jobs with limits: whatever is done in whatever order, and wherever it stops half-way, no key has more
live leases than its limit allows, the accounts are those of the leases, and in the end every job runs."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobs.conf import Settings
from jobs.core.job import JobSpec, LeasedJob
from jobs.core.limits import TypeLimits, parse_rate
from jobs.engine import Completion, Engine
from jobs.registry import JobType, registry
from jobs.store.connection import Store
from tests.engine_model.lives import live
from tests.faults.structure import read_structure
from tests.support.clock import ManualClock

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "150")) // 12
LEASE_MS = 10_000
PLACES, RATE = 2, parse_rate("4/s")
LIMITS = TypeLimits("limited", PLACES, RATE)
POOLS = ("alpha", "beta")

namespaces = itertools.count()
pools, keys, picks = st.sampled_from(POOLS), st.sampled_from(("", "a", "b")), st.integers(0, 1_000_000)


class LimitsMachine(RuleBasedStateMachine):
    """Workers lease, ask leave, set aside, end, and die between any two of these steps."""

    url: str  # set by whoever makes the class

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.store = Store(self.url, namespace=f"limits{next(namespaces)}")
        self.engine = Engine(self.store, Settings(lease_seconds=LEASE_MS / 1000), self.clock)
        for pool in POOLS:
            self.engine.topology.ensure(pool)
        self.leased: list[LeasedJob] = []  # and no leave asked for
        self.running: list[LeasedJob] = []  # with leave, as their workers remember it
        self.held: list[tuple[LeasedJob, Any]] = []  # refused, and not set aside yet
        self.starts: dict[str, list[int]] = {}
        self.forgotten: set[tuple[str, str]] = set()

    def teardown(self) -> None:
        try:
            self.everything_runs_in_the_end()
        finally:
            client = self.store.client
            if found := list(client.scan_iter(match=f"{self.store.namespace}:*", count=1000)):
                client.unlink(*found)
            self.store.close()

    # --- what workers do ------------------------------------------------------------------------------------------

    @rule(pool=pools, key=keys, count=st.integers(1, 4), priority=st.sampled_from((0, 0, 5)))
    def enqueue(self, pool: str, key: str, count: int, priority: int) -> None:
        spec = JobSpec(
            type="limited",
            pool=pool,
            priority=priority,
            concurrency_key=key or None,
            rate_key=key or None,
            max_crashes=99,
        )
        self.engine.jobs.enqueue(spec, [b"{}"] * count)

    @rule(pool=pools, limit=st.integers(1, 6))
    def lease(self, pool: str, limit: int) -> None:
        route = self.engine.topology.route_for(pool)
        token = f"token{next(namespaces)}"
        reply = self.engine.leases.lease(route, worker="w", token=token, limit=limit, lease_ms=LEASE_MS)
        self.leased += reply.jobs

    @precondition(lambda self: self.leased)
    @rule(most=st.integers(1, 6))
    def ask_leave(self, most: int) -> None:
        first = self.leased[0]
        batch = [job for job in self.leased if job.token == first.token]
        leave = self.engine.limits.take(LIMITS, first.route, first.token, batch, most)
        self.leased = [job for job in self.leased if job.token != first.token]
        for job in leave.go:
            if not any(job.id == other.id and job.token == other.token for other in self.running):
                self.running.append(job)
                self.starts.setdefault(key_of(job), []).append(self.clock.now_ms())
        self.held += leave.held
        if leave.rest:
            self.engine.leases.release(first.route, [(job.id, job.token) for job in leave.rest])

    @precondition(lambda self: self.held)
    @rule()
    def set_aside(self) -> None:
        first = self.held[0][0]
        batch = [pair for pair in self.held if pair[0].token == first.token]
        self.held = [pair for pair in self.held if pair[0].token != first.token]
        self.engine.limits.hold_back(LIMITS, first.route, batch)

    @precondition(lambda self: self.held)
    @rule()
    def die_half_way_through_that(self) -> None:
        job = self.held.pop(0)[0]
        self.engine.limits.throttle(job.route, [(job.id, job.token)])

    @precondition(lambda self: self.running)
    @rule(pick=picks, tell=st.booleans())
    def end(self, pick: int, tell: bool) -> None:
        """``tell``: else the worker dies before it gives the place back."""
        job = self.running.pop(pick % len(self.running))
        self.engine.leases.complete(job.route, [Completion(job.id, job.token, job.type, job.leased_at)])
        if tell:
            self.engine.limits.give(LIMITS, [(job.id, job.token)] * 2)

    @precondition(lambda self: self.running or self.leased)
    @rule()
    def a_worker_dies(self) -> None:
        self.running.clear()
        self.leased.clear()
        self.held.clear()

    # --- what hosts and people do -----------------------------------------------------------------------------------

    @rule(pool=pools)
    def recover(self, pool: str) -> None:
        self.engine.leases.recover(self.engine.topology.route_for(pool), limit=1000)

    @rule()
    def turn(self) -> None:
        self.engine.limits.turn(LIMITS)

    @rule()
    def sweep(self) -> None:
        """Frees what it has seen forgotten twice, and puts strays back."""
        seen = self.engine.limit_upkeep.forgotten(LIMITS)
        self.engine.limits.give(LIMITS, sorted(seen & self.forgotten))  # a life that is lived again has other ids
        self.forgotten = seen
        for route in self.engine.topology.partitions():
            self.engine.limit_upkeep.put_back(route, self.engine.limit_upkeep.strays(route))

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        waiting = [job for job in self.engine.jobs.page().items if job.state == "ready"]
        if waiting:
            self.engine.jobs.cancel(waiting[pick % len(waiting)].id)

    @rule(seconds=st.sampled_from((0.05, 0.3, 1.1, 11)))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def no_key_has_more_live_leases_than_places(self) -> None:
        structure = read_structure(self.store.client, self.store.namespace)
        assert structure.problems == []
        live = {(job.id, job.record.token) for job in structure.jobs.values() if job.record and job.state == "leased"}
        per_key = Counter(key_of(job) for job in self.running if (job.id, job.token) in live)
        assert not per_key or max(per_key.values()) <= PLACES, per_key

    @invariant()
    def no_period_has_more_starts_than_the_rate_allows(self) -> None:
        for key, starts in self.starts.items():
            for earlier, later in zip(starts, starts[RATE.starts :], strict=False):
                assert later - earlier >= RATE.period_ms, f"{key!r}: {starts}"

    def everything_runs_in_the_end(self) -> None:
        self.a_worker_dies()
        for _ in range(200):
            self.clock.advance(1.1)
            if all(self.engine.pools.get(pool).ready + self.engine.pools.get(pool).leased == 0 for pool in POOLS):
                return
            for pool in POOLS:
                self.recover(pool)
                self.lease(pool, 6)
                while self.leased:
                    self.ask_leave(6)
                while self.held:
                    self.set_aside()
            while self.running:
                self.end(0, tell=True)
            self.turn()
            self.sweep()
        raise AssertionError(f"still waiting: {self.engine.jobs.page().items}")


def key_of(job: LeasedJob) -> str:
    return job.extras.get("concurrency_key") or ""


def handler() -> None: ...


def test_limits_hold_through_every_life(valkey_url: str) -> None:
    with registry.restored():
        registry.add(JobType(handler, name="limited", concurrency=PLACES, rate=str(RATE)))
        live(type("Machine", (LimitsMachine,), {"url": valkey_url}), examples=EXAMPLES, steps=40)
