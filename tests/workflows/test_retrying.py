"""A run that is retried: what failed runs again, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import WorkflowInvalid, WrongState
from jobs.runtime import controlling
from jobs.services.relay import RelayService
from tests.support.clock import ManualClock
from tests.support.runs import Runs

WHY = {"by": "ann", "at": "2026-01-01T00:00:00.000Z", "reason": "wrong day"}


def retry(runs: Runs, run: str, node: str | None = None) -> None:
    controlling.retry(runs.relay, run, node)


def test_what_failed_runs_again_and_what_was_skipped_because_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "depends_on": ["b"]})
    runs.run_all({"b": "dead"})
    assert runs.facts(run).state == "failed"

    plan = controlling.retry_plan(runs.engine, run)
    assert (plan.again, plan.waiting) == (("b",), ("c",))
    assert runs.facts(run).state == "failed"  # it was only listed

    retry(runs, run)

    assert runs.facts(run).state == "running"
    runs.run_all()
    assert runs.ran == ["a", "b", "b", "c"]
    assert runs.facts(run).state == "succeeded"
    job = runs.engine.jobs.get(runs.nodes(run)["b"].job or "")
    assert (job.resubmissions, len(job.attempts)) == (1, 2)  # one job, and its history is kept


def test_from_a_node_everything_after_it_runs_again_with_what_it_gives_now(runs: Runs) -> None:
    run = runs.start(
        {"key": "a"},
        {"key": "b", "depends_on": ["a"], "payload": {"x": {"$from": "a.result"}}},
        {"key": "other"},
    )
    runs.run_all(a=1)
    assert runs.facts(run).state == "succeeded"

    assert controlling.retry_plan(runs.engine, run, "a") == (("a",), ("b",), ())
    retry(runs, run, "a")
    runs.run_all(a=2)

    assert runs.ran.count("other") == 1
    assert [node for node in runs.ran if node != "other"] == ["a", "b", "a", "b"]
    assert runs.engine.jobs.get(runs.nodes(run)["b"].job or "").payload == {"x": 2}
    assert runs.facts(run).state == "succeeded"


def test_it_may_fail_again_and_be_retried_again(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    for _ in range(3):
        runs.run_all({"a": "dead"})
        assert runs.states(run) == {"a": "dead", "b": "skipped"}
        retry(runs, run)
    runs.run_all()

    assert runs.ran == ["a"] * 4 + ["b"]


def test_a_cancelled_run_goes_on(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    controlling.cancel(runs.relay, run, WHY)
    runs.end(a, "cancelled")

    retry(runs, run)
    runs.run_all()

    assert runs.ran == ["a", "a", "b"]
    assert runs.facts(run).state == "succeeded"
    assert runs.facts(run).cancelled is None


def test_a_list_opens_anew_and_may_be_shorter(runs: Runs) -> None:
    run = runs.start(
        {"key": "list"},
        {
            "key": "page",
            "each": {"$from": "list.result"},
            "payload": {"n": {"$from": "each.item"}},
            "depends_on": ["list"],
        },
        {"key": "merge", "depends_on": ["page"]},
    )
    runs.run_all(list=[1, 2])

    plan = controlling.retry_plan(runs.engine, run, "list")
    assert (plan.again, plan.waiting, plan.dropped) == (("list",), ("page", "merge"), ("page:0", "page:1"))
    retry(runs, run, "list")
    runs.run_all(list=[9])

    assert runs.ran == ["list", "page:0", "page:1", "merge", "list", "page:0", "merge"]
    job = runs.engine.jobs.get(runs.nodes(run)["page:0"].job or "")
    assert job.payload == {"n": 9}
    assert runs.facts(run).state == "succeeded"


def test_one_item_runs_again_and_what_comes_after_the_list(runs: Runs) -> None:
    run = runs.start({"key": "page", "each": [1, 2]}, {"key": "merge", "depends_on": ["page"]})
    runs.run_all({"page:1": "dead"})

    retry(runs, run)
    runs.run_all()

    assert runs.ran == ["page:0", "page:1", "page:1", "merge"]


@pytest.mark.parametrize(
    ("node", "error", "message"),
    [
        (None, WrongState, "no node has failed"),
        ("x", WorkflowInvalid, "There is no node 'x'"),
        ("b", WrongState, "node 'b' still runs"),
        ("a", WrongState, "node 'b' comes after 'a' and still runs"),
    ],
)
def test_what_cannot_be_retried_says_why(runs: Runs, node: str | None, error: type[Exception], message: str) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.end(a)
    runs.lease()

    with pytest.raises(error, match=message):
        retry(runs, run, node)


def test_news_of_the_life_before_change_nothing(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.end(a, tell=False)
    stale = runs.engine.outbox.read(a.route, [a.id])
    runs.tell([a])
    runs.run_all()
    retry(runs, run, "a")

    runs.engine.workflows.step(run, stale)

    assert runs.states(run) == {"a": "ready", "b": "blocked"}


def test_one_that_was_left_half_written_is_finished_by_a_service(
    runs: Runs, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "depends_on": ["b"]})
    runs.run_all()
    control, call = runs.engine.run_control, runs.engine.run_control._run

    def die_after_the_first(script: str, *arguments: Any, **more: Any) -> Any:
        if not more["redo"]:
            raise SystemExit
        return call(script, run, arguments[1][:4], **more)

    monkeypatch.setattr(control, "_run", die_after_the_first)
    with pytest.raises(SystemExit):
        retry(runs, run, "a")
    monkeypatch.undo()
    runs.relay.advance(run)
    assert runs.lease() == []  # it stands still, although b has succeeded

    clock.advance(7)
    RelayService(runs.engine).tick()
    runs.run_all()

    assert runs.ran == ["a", "b", "c"] * 2


def test_a_job_that_retention_took_is_made_anew(runs: Runs) -> None:
    run = runs.start({"key": "a"})
    runs.run_all({"a": "dead"})
    job = runs.nodes(run)["a"].job or ""
    runs.engine.jobs.discard(job)

    retry(runs, run)
    runs.run_all()

    assert runs.ran == ["a", "a"]
    assert runs.facts(run).state == "succeeded"
