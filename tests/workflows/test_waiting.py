"""Nodes that wait for a signal or for a person, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.workflow import Workflow
from jobs.exceptions import WrongState
from jobs.runtime import controlling
from jobs.services.deadlines import DeadlineService
from tests.support.clock import ManualClock
from tests.support.runs import Runs

GO: list[dict[str, Any]] = [
    {"key": "go", "type": "", "approval": "Deploy?", "timeout": 60},
    {"key": "deploy", "depends_on": ["go"]},
    {"key": "sorry", "on_failure": ["go"], "payload": {"why": {"$from": "go.error.message"}}},
]


def test_a_signal_ends_what_waits_for_it_with_its_payload(runs: Runs) -> None:
    run = runs.start(
        {"key": "paid", "type": "", "signal": "payment"},
        {"key": "ship", "depends_on": ["paid"], "payload": {"who": {"$from": "paid.result.by"}}},
    )
    assert runs.lease() == []

    assert runs.engine.run_control.signal(run, "payment", {"by": "ann"}) == 1
    runs.relay.pursue(run)

    (ship,) = runs.lease()
    assert ship.payload == b'{"who":"ann"}'
    assert runs.engine.run_control.signal(run, "payment", {}) == 0


def test_one_that_comes_before_it_is_waited_for_is_kept(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "paid", "type": "", "signal": "payment", "depends_on": ["a"]})
    runs.engine.run_control.signal(run, "payment", 5)

    runs.run_all()

    assert runs.facts(run).state == "succeeded"
    assert runs.engine.workflows.results(run) == {"paid": 5}


def test_all_that_wait_for_it_hear_it(runs: Runs) -> None:
    inner = Workflow("inner")
    inner.signal("paid", "payment")
    run = runs.start({"key": "shop", "type": "", "workflow": inner.as_dict(), "each": list(range(260))})

    assert runs.engine.run_control.signal(run, "payment", None) == 260
    runs.relay.pursue(run)

    assert runs.facts(run).state == "succeeded"


def test_one_who_decides_is_enough(runs: Runs) -> None:
    run = runs.start(*GO)

    assert runs.engine.run_control.decide(run, "go", result={"by": "ann"}) == "succeeded"
    with pytest.raises(WrongState) as refused:
        runs.engine.run_control.decide(run, "go", error={"type": "Rejected"})
    runs.relay.pursue(run)

    assert refused.value.state == "succeeded"
    assert [job.extras["node"] for job in runs.lease()] == ["deploy"]


def test_a_wait_that_takes_too_long_takes_the_way_of_failures(runs: Runs, clock: ManualClock) -> None:
    run = runs.start(*GO)
    service = DeadlineService(runs.engine)

    clock.advance(59)
    assert service.tick() == {"met": 0}
    assert service.every == pytest.approx(1.0, abs=0.1)
    clock.advance(2)
    assert service.tick() == {"met": 1}

    (sorry,) = runs.lease()
    assert sorry.payload == b'{"why":"Nobody has decided within 60 s"}'
    assert service.tick() == {"met": 0}
    assert runs.states(run)["deploy"] == "skipped"


def test_or_goes_on_where_the_workflow_says_so(runs: Runs, clock: ManualClock) -> None:
    run = runs.start({"key": "paid", "type": "", "signal": "paid", "timeout": 5, "on_timeout": "continue"})

    clock.advance(6)
    DeadlineService(runs.engine).tick()

    assert runs.facts(run).state == "succeeded"
    assert runs.engine.workflows.results(run) == {"paid": {"timed_out": True}}


def test_one_that_was_decided_is_not_over_later(runs: Runs, clock: ManualClock) -> None:
    run = runs.start(*GO)
    runs.engine.run_control.decide(run, "go", result=True)
    runs.relay.pursue(run)

    clock.advance(61)
    DeadlineService(runs.engine).tick()

    assert runs.states(run)["go"] == "succeeded"


def test_a_node_that_is_retried_waits_as_long_again(runs: Runs, clock: ManualClock) -> None:
    run = runs.start({"key": "go", "type": "", "approval": "Deploy?", "timeout": 60})
    clock.advance(61)
    DeadlineService(runs.engine).tick()
    assert runs.facts(run).state == "failed"

    controlling.retry(runs.relay, run)
    DeadlineService(runs.engine).tick()

    assert (runs.states(run)["go"], runs.nodes(run)["go"].error) == ("ready", None)
    clock.advance(61)
    DeadlineService(runs.engine).tick()
    assert runs.facts(run).state == "failed"
