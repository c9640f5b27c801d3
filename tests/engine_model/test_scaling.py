"""Random lives of a pool that a machine sizes: loads, rules and people change, hosts are frozen between their look and
their deed. The slots never leave their bounds, rest between two changes, and are the machine's only while it is on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from jobs.conf import Settings
from jobs.core.job import JobSpec
from jobs.engine import Completion, Engine, PoolSettings, Scaling, WorkerInfo
from jobs.services.autoscaler import HOLD_SECONDS, Autoscaler
from jobs.store.connection import Store
from tests.engine_model.lives import live
from tests.support.clock import ManualClock

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "250")) // 10
POOL = "sized"
LEASE_MS = 3_600_000
HOSTS = ("one", "two", "three")

namespaces = itertools.count()
seconds = st.sampled_from((0.2, 1.0, 5.0, 10.0, HOLD_SECONDS))


class ScalingMachine(RuleBasedStateMachine):
    url: str  # set by whoever makes the class

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.store = Store(self.url, namespace=f"scaling{next(namespaces)}")
        self.engine = self.another_engine()
        self.hosts = {name: self.another_engine() for name in HOSTS}
        self.scalers = {name: Autoscaler(engine, name) for name, engine in self.hosts.items()}
        self.by_hand: int | None = None
        self.rule: dict[str, Any] | None = None
        self.leases: list[Any] = []

    def another_engine(self) -> Engine:
        return Engine(self.store, Settings(slots=5), self.clock)

    def teardown(self) -> None:
        client = self.store.client
        if found := list(client.scan_iter(match=f"{self.store.namespace}:*", count=1000)):
            client.unlink(*found)
        self.store.close()

    @initialize()
    def create(self) -> None:
        self.engine.topology.ensure(POOL)
        self.workers(1)

    # --- what people do ---------------------------------------------------------------------------------------------

    @rule(slots=st.none() | st.integers(0, 12))
    def scale_by_hand(self, slots: int | None) -> None:
        self.by_hand = slots
        self.engine.pools.configure(POOL, slots=slots)

    @rule(
        least=st.integers(0, 4),
        more=st.integers(1, 8),
        wait=st.sampled_from((0.5, 5.0, 60.0)),
        tolerance=st.sampled_from((0.0, 1.0)),
        cooldown=st.sampled_from((0.0, 5.0, 30.0)),
        dry_run=st.booleans(),
    )
    def hand_it_to_a_machine(
        self, least: int, more: int, wait: float, tolerance: float, cooldown: float, dry_run: bool
    ) -> None:
        was_on = self.rule is not None and not self.rule["dry_run"]
        self.rule = {
            "min_slots": least,
            "max_slots": least + more,
            "target_wait_seconds": wait,
            "tolerance_seconds": tolerance,
            "cooldown_seconds": cooldown,
            "dry_run": dry_run,
        }
        self.engine.pools.configure(POOL, autoscale=self.rule)
        if not was_on and not dry_run:
            assert self.slots() == min(max(self.chosen, least), least + more), "it begins with what people set"

    @rule()
    def take_it_back(self) -> None:
        self.rule = None
        self.engine.pools.configure(POOL, autoscale=None)

    # --- what the load does -----------------------------------------------------------------------------------------

    @rule(count=st.sampled_from((1, 5, 200)))
    def jobs_come(self, count: int) -> None:
        self.engine.jobs.enqueue(JobSpec(type="t", pool=POOL), [b"{}"] * count)

    @rule(count=st.sampled_from((1, 10, 100)))
    def jobs_start(self, count: int) -> None:
        token = f"token{next(namespaces)}"
        route = self.engine.topology.route_for(POOL)
        self.leases += self.engine.leases.lease(route, worker="w", token=token, limit=count, lease_ms=LEASE_MS).jobs

    @precondition(lambda self: self.leases)
    @rule()
    def jobs_end(self) -> None:
        ended, self.leases = self.leases, []
        route = self.engine.topology.route_for(POOL)
        self.engine.leases.complete(route, [Completion(job.id, job.token, job.type, job.leased_at) for job in ended])

    @rule(count=st.integers(0, 4))
    def workers(self, count: int) -> None:
        ids = [f"w{number}" for number in range(4)]
        self.engine.workers.leave(ids[count:])
        facts: dict[str, Any] = {"host": "h", "hostname": "h", "pid": 1, "started_at_ms": 1, "state": "consuming"}
        infos = [WorkerInfo(id=id, pools={POOL: self.engine.pools.slots(POOL)}, **facts) for id in ids[:count]]
        if infos:
            self.engine.workers.beat(infos, ttl_ms=LEASE_MS)

    @rule(passed=seconds)
    def time_passes(self, passed: float) -> None:
        self.clock.advance(passed)

    # --- what hosts do ------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(HOSTS))
    def look(self, name: str) -> None:
        self.judged(lambda: self.scalers[name].tick())

    @rule(name=st.sampled_from(HOSTS), other=st.sampled_from(HOSTS), passed=seconds)
    def freeze_between_look_and_deed(self, name: str, other: str, passed: float) -> None:
        """Meanwhile another host may have had its turn."""
        scalings = self.hosts[name].scalings
        decided = scalings.decided

        def late(*arguments: Any, **options: Any) -> Scaling:
            del scalings.decided  # type: ignore[method-assign]
            self.clock.advance(passed)
            if other != name:
                self.look(other)
            return decided(*arguments, **options)

        scalings.decided = late  # type: ignore[method-assign, assignment]
        try:
            self.judged(lambda: self.scalers[name].tick(), is_late=passed >= HOLD_SECONDS)
        finally:
            vars(scalings).pop("decided", None)

    def judged(self, tick: Callable[[], object], *, is_late: bool = False) -> None:
        """What a tick may do, by what was written down."""
        before, slots = self.history(), self.slots()
        tick()
        after = self.history()
        changes = [made for made in after if made.is_change and not made.dry_run]
        if self.slots() != slots:
            assert self.rule is not None, "a pool that is nobody's but people's"
            assert not self.rule["dry_run"], "a dry run"
            assert changes[-1].after == self.slots(), "carried out and not written down"
            assert changes[-1].reason
        if is_late and after == before:
            return
        for earlier, later in itertools.pairwise(changes):
            if later.reason != "outside_of_bounds" and later not in before:
                assert self.rule is not None
                assert later.at_ms - earlier.last_at_ms >= self.rule["cooldown_seconds"] * 1000, (earlier, later)

    def history(self) -> list[Scaling]:
        return self.engine.scalings.history(POOL)

    def slots(self) -> int:
        return self.engine.pools.slots(POOL)

    @property
    def chosen(self) -> int:
        """What people, or else the settings, say."""
        return 5 if self.by_hand is None else self.by_hand

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def the_slots_are_whose_they_are(self) -> None:
        if self.rule is None or self.rule["dry_run"]:
            assert self.slots() == self.chosen
        else:
            assert self.rule["min_slots"] <= self.slots() <= self.rule["max_slots"]

    @invariant()
    def every_decision_tells_its_reason(self) -> None:
        assert all(made.reason for made in self.history())

    @invariant()
    def what_is_set_is_what_is_read(self) -> None:
        stored = self.engine.pools.settings().get(POOL, PoolSettings())
        assert stored.slots == self.by_hand
        assert (stored.autoscale is None) == (self.rule is None)


def test_a_machine_keeps_its_bounds_through_every_life(valkey_url: str) -> None:
    live(type("Machine", (ScalingMachine,), {"url": valkey_url}), examples=EXAMPLES, steps=30)
