"""A node that a person counts as succeeded: whatever it was, what comes after it goes on, and it stays so."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import workflows
from jobs.api import audit
from jobs.core.states import JobState
from jobs.core.workflow import Definition
from jobs.engine import Completion
from jobs.engine.workflows import CLAIM_MS, new_run_id
from jobs.exceptions import PayloadInvalid, PayloadTooLarge, RunNotFound, WorkflowInvalid, WrongState
from jobs.services.relay import SILENT_MS, RelayService
from tests.support.clock import ManualClock
from tests.support.graphs import FAILURES, SUCCEEDED, oracle, random_nodes, verdict
from tests.support.runs import Runs

pytestmark = pytest.mark.django_db

LINE: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"]},
    {"key": "ok", "depends_on": ["load"], "payload": {"rows": {"$from": "load.result.rows", "default": "none"}}},
    {"key": "alarm", "on_failure": ["load"]},
]


def skip(run: str, node: str, **more: Any) -> Any:
    return workflows.skip(run, node, by="ann", **more)


class TestWhatItWas:
    def test_one_that_waits_never_runs_and_its_children_go_on(self, runs: Runs) -> None:
        run = runs.start(*LINE)

        skip(run, "load", result={"rows": [1]}, reason="loaded by hand")
        runs.run_all()

        assert sorted(runs.ran) == ["extract", "ok"]
        assert runs.states(run) == {"extract": "succeeded", "load": "succeeded", "ok": "succeeded", "alarm": "skipped"}
        assert runs.facts(run).state == "succeeded"
        load = runs.nodes(run)["load"]
        assert load.job is None
        assert load.skipped == "ann skipped it: loaded by hand"
        ok = runs.nodes(run)["ok"].job
        assert ok is not None
        assert runs.engine.jobs.get(ok).payload == {"rows": [1]}

    def test_one_that_failed_lets_the_run_succeed_after_all(self, runs: Runs) -> None:
        run = runs.start(*LINE[:3])
        runs.run_all({"load": "dead"})
        assert (runs.facts(run).state, runs.states(run)["ok"]) == ("failed", "skipped")

        assert skip(run, "load").state == "running"
        runs.run_all()

        assert runs.facts(run).state == "succeeded"
        assert runs.ran == ["extract", "load", "ok"]
        assert workflows.retry_plan(run, "load").again == ("load",)

    def test_one_that_was_itself_skipped_lets_those_behind_it_go_on(self, runs: Runs) -> None:
        run = runs.start(*LINE[:3])
        runs.run_all({"extract": "dead"})

        skip(run, "load")
        runs.run_all()

        assert runs.states(run) == {"extract": "dead", "load": "succeeded", "ok": "succeeded"}
        assert runs.facts(run).state == "failed"  # extract is dead, and nobody dealt with that

    def test_one_that_waits_for_its_retry_is_stopped_and_its_alarm_stays_silent(self, runs: Runs) -> None:
        run = runs.start(*LINE)
        runs.end(*runs.lease())
        (load,) = runs.lease()
        assert runs.fail(load, "retry", delay_ms=60_000) == "retry_wait"

        skip(run, "load")
        runs.run_all()

        assert runs.engine.jobs.get(load.id).state is JobState.CANCELLED
        assert runs.states(run)["alarm"] == "skipped"
        assert runs.facts(run).state == "succeeded"
        assert runs.engine.outbox.routes_with_news(runs.engine.topology.partitions()) == []

    @pytest.mark.parametrize("outcome", ["succeeded", "dead", "cancelled"])
    def test_one_that_runs_is_asked_to_stop_and_however_it_ends_is_no_news(self, runs: Runs, outcome: str) -> None:
        run = runs.start(*LINE)
        runs.end(*runs.lease())
        (load,) = runs.lease()

        skip(run, "load", result={"rows": [2]})
        assert runs.engine.jobs.get(load.id).cancel_requested
        (ok,) = runs.lease()
        if outcome == "cancelled":
            runs.end(load, outcome)
        else:  # whatever it says, a job that was asked to stop ends as cancelled
            runs.relay.tell_of([load.id])
            runs.end(load, "cancelled")
        runs.end(ok)

        assert runs.states(run) == {"extract": "succeeded", "load": "succeeded", "ok": "succeeded", "alarm": "skipped"}
        assert runs.engine.jobs.get(ok.id).payload == {"rows": [2]}

    def test_its_job_is_stopped_although_who_skipped_it_died_and_the_run_has_ended(
        self, runs: Runs, clock: ManualClock
    ) -> None:
        run = runs.start({"key": "a"})
        (a,) = runs.lease()
        runs.engine.workflows.touch(run)
        runs.engine.run_control.skip(run, "a", result=None, note={"type": "Skipped", "message": "", "traceback": ""})

        runs.relay.advance(run)  # somebody else is faster
        assert runs.facts(run).state == "succeeded"
        clock.advance(CLAIM_MS / 1000 + 1)
        RelayService(runs.engine).tick()

        assert runs.engine.jobs.get(a.id).cancel_requested
        assert runs.facts(run).to_stop == ()

    def test_one_that_waits_for_a_signal_waits_no_more(self, runs: Runs) -> None:
        run = runs.start({"key": "paid", "type": "", "signal": "payment"}, {"key": "ship", "depends_on": ["paid"]})

        skip(run, "paid", result={"by": "bob"})

        assert workflows.waiting(run) == []
        assert [job.extras["node"] for job in runs.lease()] == ["ship"]

    def test_a_list_that_has_not_opened_never_does_and_one_that_has_is_skipped_item_by_item(self, runs: Runs) -> None:
        page = {"key": "page", "each": [1, 2], "payload": {"n": {"$from": "each.item"}}, "depends_on": ["a"]}
        early, late = (runs.start({"key": "a"}, page, {"key": "end", "depends_on": ["page"]}) for _ in range(2))
        skip(early, "page")
        runs.run_all({"page:1": "dead"})
        assert runs.states(early) == {"a": "succeeded", "page": "succeeded", "end": "succeeded"}

        with pytest.raises(WrongState, match="has opened into others"):
            skip(late, "page")
        skip(late, "page:1")
        runs.run_all()

        assert runs.states(late)["page"] == "succeeded"
        assert workflows.results(late) == {"end": None}

    def test_a_node_of_a_paused_run_can_be_skipped_before_it_becomes_a_job(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()
        workflows.pause(run)
        runs.end(a)

        skip(run, "b")

        assert workflows.resume(run).state == "succeeded"
        assert runs.ran == ["a"]


class TestAfterwards:
    def test_its_dead_job_can_be_resubmitted_and_counts_again(self, runs: Runs) -> None:
        run = runs.start(*LINE[:3])
        runs.run_all({"load": "dead"})
        skip(run, "load")
        job = runs.nodes(run)["load"].job
        assert job is not None

        runs.engine.jobs.resubmit(job)
        runs.relay.tell_of([job])

        assert runs.states(run)["load"] == "ready"
        runs.run_all(load={"rows": [3]})
        assert runs.nodes(run)["load"].skipped == ""
        assert runs.facts(run).state == "succeeded"

    @pytest.mark.parametrize("was", ["waiting", "dead"])
    def test_a_retry_from_it_runs_it_after_all(self, runs: Runs, was: str) -> None:
        run = runs.start(*LINE)
        if was == "waiting":
            skip(run, "load")
        runs.run_all({"load": "dead"})
        if was == "dead":
            skip(run, "load")
            runs.run_all()
        runs.ran.clear()

        workflows.retry(run, "load")
        runs.run_all()

        assert runs.ran == ["load", "ok"]
        assert runs.nodes(run)["load"].skipped == ""
        assert runs.facts(run).state == "succeeded"

    @pytest.mark.parametrize("outcome", ["succeeded", "cancelled"])
    def test_a_retry_from_it_waits_until_its_job_has_stopped(
        self, runs: Runs, clock: ManualClock, outcome: str
    ) -> None:
        run = runs.start({"key": "a"})
        (a,) = runs.lease()
        skip(run, "a")

        workflows.retry(run, "a")
        clock.advance(SILENT_MS / 1000 + 1)
        assert runs.lease() == []
        if outcome == "succeeded":  # whatever it says
            answer = runs.engine.leases.complete(a.route, [Completion(a.id, a.token, a.type, a.leased_at)])
            assert answer == ["cancelled"]
        else:
            runs.end(a, outcome)
        runs.tell([a])
        RelayService(runs.engine).tick()
        runs.run_all(a=2)

        assert runs.ran == ["a", "a"]
        assert runs.engine.workflows.results(run) == {"a": 2}
        assert runs.facts(run).state == "succeeded"

    def test_a_retry_of_what_failed_leaves_it_as_it_is(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b"})
        runs.run_all({"a": "dead", "b": "dead"})
        skip(run, "a")

        assert workflows.retry_plan(run).again == ("b",)


class TestRefused:
    def test_what_cannot_be_skipped_says_why(self, runs: Runs) -> None:
        run = runs.start({"key": "go", "type": "", "approval": "Go?"}, {"key": "a"}, {"key": "b", "depends_on": ["go"]})
        runs.run_all()
        workflows.cancel(cancelled := runs.start({"key": "x"}))

        with pytest.raises(WorkflowInvalid, match="Node 'go' asks a person"):
            skip(run, "go")
        with pytest.raises(WorkflowInvalid, match="'nope' is no node of run"):
            skip(run, "nope")
        with pytest.raises(WrongState, match="Node 'a' has succeeded"):
            skip(run, "a")
        with pytest.raises(WrongState, match="The run was cancelled"):
            skip(cancelled, "x")
        with pytest.raises(RunNotFound):
            skip("nobody", "a")
        with pytest.raises(PayloadInvalid):
            skip(run, "b", result=object())
        with pytest.raises(PayloadTooLarge):
            skip(run, "b", result="x" * 300_000)

    def test_a_node_whose_job_is_just_being_made_is_left_alone(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        runs.engine.workflows.name(run, [(1, "01mcc5rm005jkqjtmmqd-default.1.0")])
        (a,) = runs.lease()
        runs.end(a, tell=False)
        reply = runs.engine.workflows.step(run, runs.engine.outbox.read(a.route, [a.id]))
        runs.engine.workflows.name(run, [(reply.handed[0].rank, "01mcc5rm005jkqjtmmqd-default.1.0")])

        with pytest.raises(WrongState, match="is just being started"):
            skip(run, "b")

    def test_who_skipped_what_and_why_is_on_record(self, runs: Runs) -> None:
        run = runs.start(*LINE)

        skip(run, "load", reason="loaded by hand")

        (entry,) = audit.list().items
        assert (entry.action, entry.target, entry.reason) == ("workflow_run.skip", run, "loaded by hand")
        assert (entry.before, entry.after) == ({"state": "blocked"}, {"node": "load"})


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_every_node_ends_as_if_those_that_were_skipped_at_the_start_had_succeeded(
    runs: Runs, seed: int, count: int
) -> None:
    random = Random(seed)
    nodes = random_nodes(random, count)
    outcomes = {node.key: SUCCEEDED if random.random() < 0.6 else random.choice(FAILURES) for node in nodes}
    skipped = random.sample(sorted(outcomes), count // 4)
    run = new_run_id()
    runs.relay.start(run, Definition(name="skips", nodes=tuple(nodes)), {"payload": {}})
    for key in skipped:
        skip(run, key)

    runs.run_all(outcomes)

    fates = oracle(nodes, outcomes, forced=skipped)
    assert runs.states(run) == fates
    assert runs.facts(run).state == verdict(nodes, fates)
