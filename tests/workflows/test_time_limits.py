"""Time limits of runs and of their sub-workflows: what takes too long is cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.workflow import Workflow
from jobs.engine import Engine
from jobs.runtime import controlling
from jobs.services.deadlines import DeadlineService
from tests.support.clock import ManualClock
from tests.support.runs import Runs

INNER = {
    "name": "inner",
    "nodes": [
        {"key": "a", "type": "t"},
        {"key": "b", "type": "t", "depends_on": ["a"]},
        {"key": "more", "type": "t", "each": [1, 2]},
        {"key": "clean", "type": "t", "on_complete": ["b"], "always": True},
    ],
}

WAITS = [{"key": "a", "type": "t"}, {"key": "after", "type": "t", "on_complete": ["a"]}]


def test_a_run_that_takes_too_long_is_cancelled(runs: Runs, engine: Engine, clock: ManualClock) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    runs.lease()
    engine.run_control.set_deadline(run, engine.run_control.server_now_ms() + 60_000)

    clock.advance(61)
    assert DeadlineService(engine).tick() == {"met": 1}

    facts = runs.facts(run)
    assert facts.cancelled["reason"] == "Its time limit has passed."
    assert runs.states(run)["b"] == "cancelled"


@pytest.mark.parametrize("step", ["create", "add", "open"])
def test_a_limit_that_is_over_before_the_run_has_begun_holds_once_it_has(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    service, act = DeadlineService(engine), getattr(engine.workflows, step)

    def slow(*arguments: Any, **options: Any) -> Any:
        clock.advance(3)
        service.tick()
        return act(*arguments, **options)

    monkeypatch.setattr(engine.workflows, step, slow)
    flow = Workflow("short", timeout=1)
    flow.add("b", "t", depends_on=flow.add("a", "t"))
    deadline_ms = engine.run_control.server_now_ms() + 1_000
    runs.relay.start("run", flow.definition(), {"payload": {}, "deadline_ms": deadline_ms})
    assert runs.facts("run").state == "running"

    clock.advance(1)
    service.tick()

    assert runs.facts("run").state == "cancelled"


def test_the_limit_of_a_run_that_never_came_to_be_is_forgotten(engine: Engine, clock: ManualClock) -> None:
    engine.run_control.set_deadline("never", engine.run_control.server_now_ms())

    DeadlineService(engine).tick()

    assert engine.run_control.next_deadline() is None


class TestLimitOfASubWorkflow:
    @pytest.mark.parametrize("whose", ["the node's", "the workflow's"])
    def test_what_is_in_it_ends_and_what_is_around_it_goes_on(
        self, runs: Runs, engine: Engine, clock: ManualClock, whose: str
    ) -> None:
        limits = ({"timeout": 60}, {}) if whose == "the node's" else ({}, {"timeout": 60})
        run = runs.start(
            {"key": "sub", "type": "", "workflow": {**INNER, **limits[1]}, **limits[0]},
            {"key": "other"},
            {"key": "alarm", "on_failure": ["sub"], "payload": {"why": {"$from": "sub.error.message"}}},
        )
        jobs = {job.extras["node"]: job for job in runs.lease()}

        clock.advance(61)
        assert DeadlineService(engine).tick() == {"met": 1}

        (clean,) = runs.lease()
        assert clean.extras["node"] == "sub:clean"
        asked = {node for node, job in jobs.items() if engine.jobs.get(job.id).cancel_requested}
        assert asked == {"sub:a", "sub:more:0", "sub:more:1"}
        for node, job in jobs.items():
            runs.end(job, "cancelled" if node in asked else "succeeded")
        assert runs.states(run)["sub"] == "ready"  # its clean-up runs
        runs.end(clean)

        (alarm,) = runs.lease()
        assert (runs.states(run)["sub"], runs.states(run)["sub:b"]) == ("cancelled", "cancelled")
        assert alarm.payload == b'{"why":"It was not done within 60 s"}'
        runs.end(alarm)
        assert (runs.facts(run).state, runs.states(run)["other"]) == ("succeeded", "succeeded")
        assert engine.run_control.next_deadline() is None

    def test_a_retry_gives_it_as_long_again(self, runs: Runs, engine: Engine, clock: ManualClock) -> None:
        run = runs.start({"key": "sub", "type": "", "workflow": INNER, "timeout": 60})
        for _ in range(2):
            jobs = runs.lease()
            clock.advance(61)
            assert DeadlineService(engine).tick() == {"met": 1}
            for job in [*jobs, *runs.lease()]:
                stopped = engine.jobs.get(job.id).cancel_requested
                runs.end(job, "cancelled" if stopped else "succeeded")
            assert runs.facts(run).state == "cancelled"
            controlling.retry(runs.relay, run)

        runs.run_all()

        assert runs.facts(run).state == "succeeded"
        assert engine.workflows.parents(run, ["sub"])["sub"].error is None

    def test_a_retry_from_a_node_gives_time_to_the_groups_that_it_is_in_alone(
        self, runs: Runs, engine: Engine, clock: ManualClock
    ) -> None:
        """Those inside are cut because of the one around them, and another because of itself."""
        deep = {"key": "deep", "type": "", "workflow": {"name": "deep", "nodes": WAITS}}
        inner = {"name": "inner", "nodes": [*WAITS, deep]}
        run = runs.start(*({"key": key, "type": "", "workflow": inner, "timeout": 60} for key in ("one", "two")))
        jobs = runs.lease()
        clock.advance(61)
        assert DeadlineService(engine).tick() == {"met": 2}
        for job in jobs:
            runs.end(job, "cancelled")
        assert runs.facts(run).state == "cancelled"
        runs.ran.clear()

        controlling.retry(runs.relay, run, "one:a")
        runs.run_all()

        assert sorted(runs.ran) == ["one:a", "one:after", "one:deep:after"]
        assert runs.states(run)["two:after"] == runs.states(run)["two:deep:after"] == "cancelled"
        controlling.retry(runs.relay, run)
        runs.run_all()
        assert runs.facts(run).state == "succeeded"

    def test_one_that_is_done_in_time_has_no_limit_any_more(
        self, runs: Runs, engine: Engine, clock: ManualClock
    ) -> None:
        run = runs.start({"key": "sub", "type": "", "workflow": INNER, "timeout": 60}, {"key": "late", "delay": 90})
        runs.run_all()

        clock.advance(61)
        DeadlineService(engine).tick()

        assert set(runs.states(run).values()) == {"succeeded", "ready"}
