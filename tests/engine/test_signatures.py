"""Every script has a caller, and every caller fits the script's signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jobs.core.autoscale import Decision, Sighting
from jobs.core.job import JobSpec, Unique
from jobs.core.limits import TypeLimits, parse_rate
from jobs.engine import Scope, WorkerInfo
from jobs.store.connection import Store
from jobs.store.scripts import LUA_DIR, Call
from tests.support.clock import ManualClock
from tests.support.steps import Steps

WITH_TESTS_OF_THEIR_VERBS = (
    "backlog_",
    "bulk_",
    "death_",
    "figures_",
    "job_fire",
    "job_log",
    "line_",
    "log_read",
    "node_",
    "partition_halt",
    "schedule_",
    "workflow_",
)
"""Called by the tests of their own verbs, and by those of runs."""


def test_the_verbs_of_the_engine_call_every_script(
    steps: Steps, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that the unpack block does not have, or lacks, is a TypeError at the call."""
    called: set[str] = set()
    run, run_each = Store.run, Store.run_each

    def noted(store: Store, name: str, /, *arguments: Any, **named: Any) -> Any:
        called.add(name)
        return run(store, name, *arguments, **named)

    def noted_each(store: Store, name: str, calls: Sequence[Call]) -> list[Any]:
        called.add(name)
        return run_each(store, name, calls)

    monkeypatch.setattr(Store, "run", noted)
    monkeypatch.setattr(Store, "run_each", noted_each)
    engine = steps.engine

    for _ in range(2):  # the second claims a key whose job has ended
        engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])
        job = steps.lease(started=True)
        engine.leases.progress(job, 1)
        engine.leases.renew(steps.route, [(job.id, job.token)], 1_000)
        steps.complete(job)
    engine.jobs.resubmit(steps.bury())
    steps.release(steps.lease())
    steps.park(steps.lease())
    engine.leases.unpark(steps.route, ["t"])
    steps.crash(steps.lease())
    engine.jobs.run_now(steps.enqueue(id="mine", delay_ms=5))
    engine.jobs.prioritize_many(["mine"], 1)
    engine.moving.move([steps.enqueue()], "other", move="m", at_ms=0)
    engine.jobs.cancel("mine")
    engine.jobs.discard("mine")
    engine.jobs.page()
    engine.jobs.void("00000000000000000000-default.1.0")
    engine.leases.promote(steps.route)
    engine.leases.recover(steps.route)
    steps.enqueue()
    steps.lease()
    engine.pools.pause("default", by="me")
    assert engine.pauses.settle(Scope("pool", "default"), timeout=0) == 1
    engine.pools.resume("default")
    engine.pools.configure("default", slots=1)
    engine.types.set("t", {"priority": 1})
    engine.mutes.end("type", "t")
    token = engine.scalings.take("host", 1_000) or ""
    decision = Decision(slots=2, reason="in_tolerance_band")
    engine.scalings.decided(token, "default", Sighting(slots=1, workers=1), decision, at_ms=0, dry_run=False)
    facts = WorkerInfo(id="w", host="w", hostname="m", pid=1, pools={}, started_at_ms=1, state="consuming")
    engine.workers.beat([facts], ttl_ms=1_000)
    engine.workers.pause("w", by="ops")
    engine.upkeep.prune_partition(steps.route)
    engine.leases.bundle_from = 2
    steps.enqueue_many(2)
    limits, jobs = TypeLimits("t", 1, parse_rate("1/s")), steps.lease_all()
    leave = engine.limits.take(limits, steps.route, jobs[0].token, jobs, 9)
    engine.limits.hold_back(limits, steps.route, leave.held)
    engine.limits.give(limits, [(job.id, job.token) for job in leave.go])
    clock.advance(3)
    engine.limits.turn(limits)
    engine.limits.take(TypeLimits("rated", None, parse_rate("1/s")), steps.route, "token", jobs, 9)
    engine.limit_upkeep.tidy(limits)
    engine.caps.set("default", None)
    steps.enqueue_many(2)
    steps.lease_all()
    engine.jobs.page()

    scripts = {path.stem for path in LUA_DIR.glob("*.lua")}
    assert called <= scripts
    assert {name for name in scripts - called if not name.startswith(WITH_TESTS_OF_THEIR_VERBS)} == set()
