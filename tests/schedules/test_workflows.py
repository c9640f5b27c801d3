"""Schedules that start workflows: each firing starts one run, of the newest version."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs import Context, Workflow, job, workflows
from jobs.api import schedule_status, schedules, workflow_runs
from jobs.core.job import Job
from jobs.core.schedule.definition import STARTER
from jobs.engine import Completion
from jobs.exceptions import ScheduleInvalid
from jobs.registry import registry
from jobs.services.relay import RelayService
from tests.schedules.conftest import World
from tests.support.runs import Runs


@pytest.fixture
def runs(world: World, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """A stored workflow, and what becomes of its runs, all under the test's clock."""
    monkeypatch.setattr(workflow_runs, "get_engine", lambda: world.engine)

    @job("schedules.step")
    def step(day: str = "") -> None: ...

    flow = Workflow("nightly")
    flow.chain(flow.add("a", step, {"day": flow.payload("day")}), flow.add("b", step))
    workflows.define(flow)
    return Runs(world.engine)


def start(world: World, one: Job, *, times: int = 1) -> dict[str, Any]:
    """A worker runs the job that starts the workflow, and ends it. ``times``: it was interrupted before."""
    leased = world.lease(one.id)
    assert isinstance(one.payload, dict)
    for _ in range(times):
        told = registry.get(one.type).function(**one.payload, ctx=Context(leased, one.payload))
    completion = Completion(leased.id, leased.token, leased.type, leased.leased_at, None, None)
    assert world.engine.leases.complete(leased.route, [completion]) == ["ok"]
    return told


def minutely(world: World, **fields: Any) -> None:
    world.schedule(job_type="", workflow="nightly", payload={"day": "monday"}, **fields)


def test_a_firing_starts_one_run_that_knows_where_it_comes_from(world: World, runs: Runs) -> None:
    minutely(world)
    world.run(60)

    [one] = world.jobs()
    told = start(world, one)

    run = workflows.get(one.id)
    assert told == {"run": one.id, "version": 1}
    assert one.type == STARTER
    assert (run.name, run.version, run.payload, run.schedule) == ("nightly", 1, {"day": "monday"}, "s")
    assert run.fire_time_ms == world.start_ms + 60_000
    assert run.started_by == "schedule s"


def test_a_starter_that_is_run_again_starts_nothing_new(world: World, runs: Runs) -> None:
    minutely(world)
    world.run(60)
    [one] = world.jobs()

    told = start(world, one, times=2)

    assert told["run"] == one.id
    assert [run.id for run in workflows.list().items] == [one.id]


def test_overlap_asks_whether_the_run_has_ended_and_not_only_the_job_that_started_it(world: World, runs: Runs) -> None:
    minutely(world, overlap="skip")
    world.run(60)
    [one] = world.jobs()
    start(world, one)

    world.run(60)
    assert world.skipped() == [(2.0, f"the job before has not ended: {one.id}")]

    runs.run_all()
    world.run(60)
    assert world.fired() == [1, 3]


def test_a_later_firing_may_cancel_the_run_of_the_one_before(world: World, runs: Runs) -> None:
    minutely(world, overlap="cancel_old")
    world.run(60)
    [one] = world.jobs()
    start(world, one)

    world.run(60)

    assert workflows.get(one.id).cancelled["by"] == "schedule s"
    RelayService(world.engine).tick()
    world.run(5)
    assert workflows.get(one.id).state == "cancelled"
    assert world.fired() == [1, 2]


@pytest.mark.parametrize(("outcome", "word"), [("succeeded", "succeeded"), ("dead", "failed")])
def test_the_history_of_the_schedule_tells_how_the_run_ended(world: World, runs: Runs, outcome: str, word: str) -> None:
    minutely(world)
    world.run(60)
    [one] = world.jobs()
    start(world, one)
    assert schedule_status.status(["s"])["s"].firings[0].outcome == "running"

    runs.run_all({"b": outcome})

    [firing] = schedule_status.status(["s"])["s"].firings
    assert (firing.outcome, firing.job_id) == (word, one.id)


def test_running_it_now_starts_a_run_too(world: World, runs: Runs) -> None:
    minutely(world)

    made = schedules.run("s")

    assert start(world, world.engine.jobs.get(made.id))["run"] == made.id


def test_it_must_name_a_workflow_that_is_stored(world: World, runs: Runs) -> None:
    with pytest.raises(ValidationError, match="Did you mean 'nightly'"):
        world.schedule(job_type="", workflow="nigthly")
    with pytest.raises(ScheduleInvalid, match="no stored workflow 'x'"):
        schedules.create(name="t", workflow="x", cron="* * * * *")
    with pytest.raises(ScheduleInvalid, match="a job type and a workflow"):
        schedules.create(name="t", workflow="nightly", job_type="schedules.step", cron="* * * * *")

    made = schedules.create(name="t", workflow="nightly", cron="* * * * *")

    assert schedules.export(["t"])[0]["workflow"] == "nightly"
    assert made.target == "workflow nightly"
