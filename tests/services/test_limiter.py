"""What keeps the lines of limits moving when the workers that should do it are gone."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from jobs.core.limits import TypeLimits, parse_rate
from jobs.engine import Engine, Leave
from jobs.exceptions import StoreUnavailable
from jobs.registry import JobType, registry
from jobs.services.limiter import IDLE_SECONDS, Limiter
from jobs.store.keys import SettingKeys
from tests.support.clock import ManualClock
from tests.support.steps import Steps

LIMITS = TypeLimits("t", 1, None)


@pytest.fixture
def steps(engine: Engine) -> Steps:
    return Steps(engine)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registry.restored():
        registry.add(JobType(handler, name="t", concurrency=1))
        yield


def handler() -> None: ...


def ask(steps: Steps) -> Leave:
    jobs = steps.lease_all()
    leave = steps.engine.limits.take(LIMITS, steps.route, jobs[0].token, jobs, 100)
    steps.engine.limits.hold_back(LIMITS, steps.route, leave.held)
    return leave


def later(limiter: Limiter, seconds: float = 1.0) -> None:
    """As if the limiter had seen all this earlier."""
    limiter._seen_at = {what: at - seconds for what, at in limiter._seen_at.items()}


def test_a_place_that_a_dead_worker_left_goes_to_the_next(steps: Steps, clock: ManualClock) -> None:
    limiter = Limiter(steps.engine)
    steps.enqueue_many(2)
    ask(steps)
    clock.advance(11)
    steps.engine.leases.recover(steps.route)

    assert limiter.tick()["freed"] == 0  # its end may be on its way
    later(limiter)
    assert limiter.tick()["freed"] == 1

    assert len(ask(steps).go) == 1


def test_a_place_whose_job_runs_is_left_alone(steps: Steps) -> None:
    limiter = Limiter(steps.engine)
    steps.enqueue_many(2)
    ask(steps)
    for _ in range(3):
        assert limiter.tick() == {"freed": 0, "put_back": 0}
        later(limiter)


def test_who_stands_aside_and_in_no_line_is_put_back(steps: Steps) -> None:
    limiter = Limiter(steps.engine)
    steps.enqueue()
    job = steps.lease()
    steps.engine.limits.throttle(steps.route, [(job.id, job.token)])

    assert limiter.tick()["put_back"] == 0
    later(limiter)
    assert limiter.tick()["put_back"] == 1

    assert steps.get(job.id).throttled is False
    assert steps.lease().id == job.id


def test_a_sweep_that_failed_is_made_again(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(steps.engine)
    steps.enqueue()
    job = steps.lease()
    steps.engine.limits.throttle(steps.route, [(job.id, job.token)])
    with monkeypatch.context() as away:
        away.setattr(steps.engine.limit_upkeep, "none_stands_aside", Mock(side_effect=StoreUnavailable))
        with pytest.raises(StoreUnavailable):
            limiter.tick()

    limiter.tick()
    later(limiter)
    assert limiter.tick()["put_back"] == 1


def test_starts_that_are_due_are_given_when_no_worker_asks(steps: Steps, clock: ManualClock) -> None:
    limits = TypeLimits("slow", None, parse_rate("1/m"))
    registry.add(JobType(handler, name="slow", rate="1/m"))
    steps.enqueue_many(2, type="slow")
    jobs = steps.lease_all()
    leave = steps.engine.limits.take(limits, steps.route, jobs[0].token, jobs, 100)
    steps.engine.limits.hold_back(limits, steps.route, leave.held)
    clock.advance(62)

    Limiter(steps.engine).tick()

    assert not steps.get(jobs[1].id).throttled


def test_it_is_busy_only_while_somebody_waits(steps: Steps) -> None:
    limiter = Limiter(steps.engine)
    limiter.tick()
    assert limiter.every > IDLE_SECONDS / 2
    steps.enqueue_many(2)
    leave = ask(steps)
    limiter.tick()
    assert limiter.every < 2

    steps.engine.jobs.cancel(leave.held[0][0].id)
    steps.complete(leave.go[0])
    steps.engine.limits.give(LIMITS, [(leave.go[0].id, leave.go[0].token)])
    limiter.tick()
    limiter.tick()

    assert limiter.every > IDLE_SECONDS / 2
    assert steps.engine.limit_upkeep.waited_for() == []


def test_limits_of_other_code_are_left_to_its_hosts(steps: Steps) -> None:
    steps.enqueue_many(2)
    ask(steps)

    with registry.restored():
        registry._types.clear()
        limiter = Limiter(steps.engine)
        for _ in range(2):
            limiter.tick()
            later(limiter)

    assert steps.engine.limit_upkeep.waited_for() == ["t"]


def test_a_cap_whose_partition_forgot_it_is_told_again(engine: Engine, steps: Steps) -> None:
    steps.engine.pools.configure("default", max_running=1)
    engine.store.client.delete(engine.limits._records.partition(steps.route).control)

    Limiter(engine).tick()

    assert engine.caps.load(steps.route).share == 1


def test_shares_follow_the_jobs(engine: Engine) -> None:
    engine.store.client.hset(SettingKeys(engine.store.namespace).topology, "wide", b'{"1": 2}')
    engine.pools.configure("wide", max_running=1)
    steps = Steps(engine, "wide")
    steps.enqueue_many(5)
    [route] = [route for route in engine.topology.partitions("wide") if engine.caps.load(route).ready]

    Limiter(engine).tick()

    assert engine.caps.load(route).share == 1
