"""A run that is cancelled: what waits never starts, what runs is stopped, clean-ups run."""

from __future__ import annotations

import pytest

from jobs.core.workflow import Definition, Node
from jobs.engine.workflows import CLAIM_MS
from jobs.exceptions import WrongState
from jobs.runtime import controlling
from jobs.runtime.relaying import Relay
from jobs.services.relay import RelayService
from tests.support.clock import ManualClock
from tests.support.runs import Runs

WHY = {"by": "ann", "at": "2026-01-01T00:00:00.000Z", "reason": "wrong day"}

CLEAN = [
    {"key": "a"},
    {"key": "b", "depends_on": ["a"]},
    {"key": "clean", "on_complete": ["b"], "always": True},
    {"key": "report", "on_complete": ["b"]},
]

NODE_A = Definition(name="test", nodes=(Node(key="a", type="test.node"),))


def cancel(runs: Runs, run: str) -> bool:
    return controlling.cancel(runs.relay, run, WHY)


def test_what_waits_never_starts_what_runs_is_stopped_and_clean_ups_run(runs: Runs) -> None:
    run = runs.start(*CLEAN, {"key": "c"})
    a, c = sorted(runs.lease(), key=lambda job: job.extras["node"])

    assert cancel(runs, run)

    assert runs.engine.jobs.get(a.id).cancel_requested
    (clean,) = runs.lease()
    assert clean.extras["node"] == "clean"  # b was cancelled while it waited: that is an end
    for job in (a, c):
        runs.end(job, "cancelled")
    assert runs.facts(run).state == "running"
    runs.end(clean)
    assert runs.facts(run).state == "cancelled"
    assert runs.facts(run).cancelled == WHY
    assert runs.states(run) == {
        "a": "cancelled",
        "b": "cancelled",
        "clean": "succeeded",
        "report": "cancelled",
        "c": "cancelled",
    }


def test_jobs_that_have_not_begun_end_at_once(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})

    cancel(runs, run)

    assert runs.lease() == []
    assert runs.facts(run).state == "cancelled"


def test_told_twice_it_changes_nothing_and_a_run_that_is_over_refuses(runs: Runs) -> None:
    run = runs.start(*CLEAN)
    runs.lease()

    assert [cancel(runs, run), cancel(runs, run)] == [True, False]

    over = runs.start({"key": "a"})
    runs.run_all()
    with pytest.raises(WrongState) as refused:
        cancel(runs, over)
    assert refused.value.state == "succeeded"


def test_a_list_that_has_not_opened_never_does_and_one_that_has_ends_with_its_items(runs: Runs) -> None:
    run = runs.start({"key": "early", "each": [1, 2]}, {"key": "a"}, {"key": "late", "each": [1], "depends_on": ["a"]})
    leased = runs.lease()

    cancel(runs, run)
    for job in leased:
        runs.end(job, "cancelled")

    states = runs.states(run)
    assert (states["early"], states["late"], states["early:0"]) == ("cancelled", "cancelled", "cancelled")
    assert "late:0" not in states
    assert runs.facts(run).state == "cancelled"


def test_nobody_waits_for_a_signal_or_a_person_any_more(runs: Runs) -> None:
    run = runs.start({"key": "go", "type": "", "approval": "Go?"}, {"key": "paid", "type": "", "signal": "paid"})

    cancel(runs, run)

    assert runs.states(run) == {"go": "cancelled", "paid": "cancelled"}
    assert runs.facts(run).state == "cancelled"
    assert runs.engine.run_control.waiting(run) == []


def test_a_cancel_that_was_left_half_told_is_finished_by_a_service(runs: Runs, clock: ManualClock) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.engine.workflows.touch(run)
    runs.engine.run_control.cancel(run, WHY)  # and here the process died

    clock.advance(7)
    RelayService(runs.engine).tick()

    assert runs.engine.jobs.get(a.id).cancel_requested
    assert runs.states(run)["b"] == "cancelled"


def test_what_a_relay_that_died_was_handed_does_not_run(runs: Runs, clock: ManualClock) -> None:
    def die_before_the_job_is_made(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Relay(runs.engine, die_before_the_job_is_made).start("r", NODE_A, {"payload": {}})
    assert runs.nodes("r")["a"].job is not None
    cancel(runs, "r")

    clock.advance(CLAIM_MS / 1000 + 1)
    RelayService(runs.engine).tick()

    assert runs.lease() == []
    assert runs.facts("r").state == "cancelled"
