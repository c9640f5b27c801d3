"""A run from its start to its end: who is released when, who is skipped, and how it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs.core.job import LeasedJob
from jobs.engine import Engine, run_nodes
from jobs.exceptions import RunNotFound
from tests.support.clock import ManualClock
from tests.support.runs import Runs

NIGHTLY: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"], "pool": "background", "max_retries": 5},
    {"key": "ok", "on_success": ["load"]},
    {"key": "alarm", "on_failure": ["extract", "load"], "join": "any"},
    {"key": "clean", "on_complete": ["load"]},
]


def test_all_goes_well(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all()

    assert runs.ran[:2] == ["extract", "load"]
    assert runs.states(run) == {
        "extract": "succeeded",
        "load": "succeeded",
        "ok": "succeeded",
        "alarm": "skipped",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"


def test_a_failure_skips_what_wants_success_and_that_spreads(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all({"extract": "dead"})

    assert sorted(runs.ran) == ["alarm", "clean", "extract"]
    assert runs.states(run) == {
        "extract": "dead",
        "load": "skipped",
        "ok": "skipped",
        "alarm": "succeeded",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"


def test_a_run_whose_dead_node_nobody_deals_with_has_failed(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})

    runs.run_all({"a": "dead"})

    facts = runs.facts(run)
    assert (facts.state, facts.counts["dead"], facts.counts["skipped"]) == ("failed", 1, 1)
    assert runs.nodes(run)["a"].error == {"type": "ValueError", "message": "a failed", "traceback": ""}


@pytest.mark.parametrize(
    ("join", "released_after"), [("all", 3), ("any", 1), (2, 2)], ids=["all", "any", "at least two"]
)
def test_a_join_is_released_when_as_many_parents_as_it_wants_have_ended(
    runs: Runs, join: Any, released_after: int
) -> None:
    runs.start({"key": "a"}, {"key": "b"}, {"key": "c"}, {"key": "d", "depends_on": ["a", "b", "c"], "join": join})
    parents = runs.lease()

    for number, parent in enumerate(parents, start=1):
        runs.end(parent)
        runs.lease()
        assert ("d" in runs.ran) == (number >= released_after)

    assert runs.ran.count("d") == 1


def test_a_retry_of_a_node_is_no_end_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "on_failure": ["a"]})
    (a,) = runs.lease()

    runs.fail(a, "retry")

    assert runs.states(run) == {"a": "ready", "b": "blocked"}


def test_nodes_keep_all_options_of_jobs(runs: Runs) -> None:
    runs.start(
        {
            "key": "a",
            "pool": "background",
            "priority": 7,
            "max_retries": 5,
            "timeout": 3,
            "backoff": {"kind": "fixed", "seconds": 2},
            "tags": ["night"],
            "meta": {"team": "blue"},
            "concurrency_key": "k",
            "rate_key": "r",
            "payload": {"n": 1},
        }
    )

    (found,) = runs.lease()

    wanted = (found.route.pool, found.priority, found.max_retries, found.timeout, found.payload)
    assert wanted == ("background", 7, 5, 3.0, b'{"n":1}')
    assert found.backoff[:2] == ("fixed", 2.0)
    assert found.extras["tags"] == ["night"]
    assert found.extras["meta"] == {"team": "blue"}
    assert (found.extras["concurrency_key"], found.extras["rate_key"]) == ("k", "r")


def test_a_delay_counts_from_the_release(runs: Runs, clock: ManualClock) -> None:
    runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"], "delay": 30})
    runs.run_all()
    clock.advance(29)
    assert runs.lease() == []

    clock.advance(2)

    assert [found.extras["node"] for found in runs.lease()] == ["b"]


# What children are given ---------------------------------------------------------------------------------------------


def test_a_run_that_a_former_version_began_to_write_down_as_json_goes_on(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as former:
        former.setattr(run_nodes, "encode_node", msgspec.json.encode)
        former.setattr(runs.engine.workflows, "open", lambda _: pytest.fail("it died"))
        with pytest.raises(pytest.fail.Exception, match="it died"):
            runs.start(*NIGHTLY, id="r")
    run = runs.start(*NIGHTLY, id="r")

    runs.run_all({"load": "dead"})

    assert runs.ran == ["extract", "load", "alarm", "clean"]
    assert runs.nodes(run)["load"].node.max_retries == 5


def test_the_result_of_a_run_is_that_of_the_nodes_that_nobody_waits_for(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c"}, {"key": "d", "on_failure": ["a"]})

    runs.run_all(a=1, b=2, c=3)

    assert runs.engine.workflows.results(run) == {"b": 2, "c": 3}


# A dead node lives again ---------------------------------------------------------------------------------------------


def resubmit(runs: Runs, run: str, key: str) -> LeasedJob:
    job_id = runs.nodes(run)[key].job
    assert job_id is not None
    route = runs.engine.topology.partitions()[0]
    runs.engine.jobs.resubmit(job_id)
    runs.relay.tell(route, [job_id])
    (leased,) = runs.lease()
    return leased


def test_a_resubmitted_node_that_succeeds_opens_again_what_was_skipped_because_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "depends_on": ["b"]})
    runs.run_all({"a": "dead"})
    assert runs.facts(run).state == "failed"

    again = resubmit(runs, run, "a")
    assert (runs.facts(run).state, runs.facts(run).finished_at_ms) == ("running", 0)
    assert runs.states(run) == {"a": "ready", "b": "blocked", "c": "blocked"}
    runs.end(again)
    runs.run_all()

    assert runs.states(run) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    facts = runs.facts(run)
    assert (facts.state, facts.lives) == ("succeeded", 1)


def test_what_ran_because_a_node_was_dead_does_not_run_again(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "alarm", "on_failure": ["a"]}, {"key": "b", "depends_on": ["a"]})
    runs.run_all({"a": "dead"})

    runs.end(resubmit(runs, run, "a"), "dead")
    runs.run_all()

    assert runs.ran == ["a", "alarm", "a"]
    assert runs.states(run) == {"a": "dead", "alarm": "succeeded", "b": "skipped"}


def test_news_that_come_late_change_nothing(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.end(a, "dead", tell=False)
    (late,) = runs.engine.outbox.read(a.route, [a.id])
    runs.tell([a])
    runs.end(resubmit(runs, run, "a"))

    reply = runs.engine.workflows.step(run, [late])

    assert reply.fresh == 0
    assert runs.states(run)["a"] == "succeeded"


# Runs among others ---------------------------------------------------------------------------------------------------


def test_the_same_id_starts_one_run(runs: Runs) -> None:
    run = runs.start({"key": "a"}, id="night-1")
    runs.start({"key": "x"}, {"key": "y"}, id="night-1")

    runs.run_all()

    assert runs.ran == ["a"]
    assert runs.states(run) == {"a": "succeeded"}


def test_a_start_that_broke_off_goes_on_when_it_is_made_again(runs: Runs, engine: Engine) -> None:
    nodes = [{"key": "a"}, {"key": "b", "depends_on": ["a"]}]
    engine.workflows.create("night-1", "test", {"payload": {}})

    runs.start(*nodes, id="night-1")
    runs.run_all()

    assert runs.states("night-1") == {"a": "succeeded", "b": "succeeded"}


def test_a_run_that_is_not_there(runs: Runs) -> None:
    with pytest.raises(RunNotFound, match="no run 'gone'"):
        runs.facts("gone")
    with pytest.raises(RunNotFound):
        runs.relay.advance("gone")


def test_ended_runs_are_told_oldest_end_first_and_again_when_they_went_on(runs: Runs, clock: ManualClock) -> None:
    first, second = runs.start({"key": "a"}), runs.start({"key": "b"})
    jobs = {job.extras["workflow_run"]: job for job in runs.lease()}
    runs.end(jobs[second], "dead")
    clock.advance(1)
    runs.end(jobs[first])
    seen = [facts.id for facts in runs.engine.workflows.ended(0)]
    since = clock.advance(1)

    runs.end(resubmit(runs, second, "b"))

    assert seen == [second, first]
    assert [(facts.id, facts.state) for facts in runs.engine.workflows.ended(since)] == [(second, "succeeded")]
