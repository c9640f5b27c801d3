"""The cases by which workflows are accepted: of one parent and its child, and of chains, groups and chords."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from jobs import Workflow, workflows
from jobs.core.states import JobState
from jobs.engine.workflows import new_run_id
from jobs.services.pruner import Pruner
from jobs.services.relay import RelayService
from tests.support.clock import ManualClock
from tests.support.graphs import CANCELLED, DEAD
from tests.support.runs import Runs

CHILD: dict[str, Any] = {"key": "child", "depends_on": ["parent"]}


class TestParentAndChild:
    def test_a_child_that_is_written_down_before_its_parent_runs_after_it(self, runs: Runs) -> None:
        """AC-117"""
        run = runs.start(CHILD, {"key": "parent"})

        runs.run_all()

        assert runs.ran == ["parent", "child"]
        assert runs.facts(run).state == "succeeded"

    def test_a_child_of_a_success_and_a_child_of_a_failure_both_run(self, runs: Runs) -> None:
        """AC-118"""
        run = runs.start(
            {"key": "good"}, {"key": "bad"}, {"key": "a", "on_success": ["good"]}, {"key": "b", "on_failure": ["bad"]}
        )

        runs.run_all({"bad": "dead"})

        assert sorted(runs.ran) == ["a", "b", "bad", "good"]
        assert runs.facts(run).state == "succeeded"  # somebody dealt with the failure

    def test_a_child_of_success_whose_parent_fails_never_runs_and_ends_as_skipped(self, runs: Runs) -> None:
        """AC-119"""
        run = runs.start({"key": "parent"}, CHILD)

        runs.run_all({"parent": "dead"})

        assert runs.ran == ["parent"]
        assert runs.states(run) == {"parent": "dead", "child": "skipped"}

    def test_a_parent_that_fails_twice_and_then_succeeds_runs_no_child_of_failure(self, runs: Runs) -> None:
        """AC-121: an attempt that is tried again is no end."""
        run = runs.start({"key": "parent"}, {"key": "alarm", "on_failure": ["parent"]}, CHILD)
        for _ in range(2):
            (parent,) = runs.lease()
            assert runs.fail(parent, "retry") == "retry_wait"
            runs.tell([parent])
            runs.engine.jobs.run_now(parent.id)
        runs.run_all()

        assert runs.ran == ["parent"] * 3 + ["child"]
        assert runs.states(run)["alarm"] == "skipped"

    def test_no_service_of_a_host_that_starts_runs_a_child_before_its_parent(
        self, runs: Runs, clock: ManualClock
    ) -> None:
        """AC-122: waiting children are no jobs yet, so nothing that looks for lost jobs can find them."""
        run = runs.start({"key": "parent"}, CHILD, {"key": "later", "depends_on": ["child"]})
        (parent,) = runs.lease()
        for _ in range(3):  # a host that starts: relay, recovery of leases that ran out, pruning
            clock.advance(7)
            RelayService(runs.engine).tick()
            Pruner(runs.engine).tick()
            for route in runs.engine.topology.partitions(fresh=True):
                runs.engine.leases.renew(route, [(parent.id, parent.token)], lease_ms=10_000)
                runs.engine.leases.recover(route, limit=100, lease_ms=10_000)

            assert runs.lease() == []
            assert runs.states(run) == {"parent": "ready", "child": "blocked", "later": "blocked"}
        runs.end(parent)
        assert [job.extras["node"] for job in runs.lease()] == ["child"]

    def test_a_hundred_parents_that_end_at_once_on_many_workers_run_their_child_once(self, runs: Runs) -> None:
        """AC-123"""
        parents = [f"p{number}" for number in range(100)]
        run = runs.start(*({"key": key} for key in parents), {"key": "child", "depends_on": parents})
        jobs = runs.lease()
        gate = threading.Barrier(10)
        errors: list[BaseException] = []

        def work(some: list[Any]) -> None:
            try:
                gate.wait(30)
                for job in some:
                    runs.end(job)
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(jobs[at::10],)) for at in range(10)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)

        assert errors == []
        runs.run_all()
        assert Counter(runs.ran) == Counter([*parents, "child"])
        assert runs.facts(run).state == "succeeded"

    def test_a_child_keeps_pool_retries_and_keys_when_it_is_released(self, runs: Runs) -> None:
        """AC-125"""
        backoff = {"kind": "fixed", "seconds": 7}
        options = {"pool": "slow", "max_retries": 9, "backoff": backoff, "concurrency_key": "eu", "rate_key": "smtp"}
        run = runs.start({"key": "parent"}, {**CHILD, **options, "priority": 3, "tags": ["night"]})
        runs.end(*runs.lease())

        child = runs.engine.jobs.get(str(runs.nodes(run)["child"].job))

        assert (child.pool, child.max_retries, child.priority, list(child.tags)) == ("slow", 9, 3, ["night"])
        (leased,) = runs.lease()
        assert tuple(leased.backoff)[:2] == ("fixed", 7.0)
        assert (leased.extras["concurrency_key"], leased.extras["rate_key"]) == ("eu", "smtp")

    @pytest.mark.parametrize("edge", ["on_failure", "on_complete"])
    def test_a_cancelled_job_never_starts_and_its_children_hear_of_it(self, runs: Runs, edge: str) -> None:
        """AC-114"""
        run = runs.start(
            {"key": "parent"}, {"key": "child", edge: ["parent"]}, {"key": "other", "on_success": ["parent"]}
        )

        runs.engine.jobs.cancel(str(runs.nodes(run)["parent"].job))
        runs.relay.tell_of([str(runs.nodes(run)["parent"].job)])

        assert [job.extras["node"] for job in runs.lease()] == ["child"]
        assert runs.states(run)["other"] == "skipped"


def started(runs: Runs, flow: Workflow) -> str:
    run = new_run_id()
    runs.relay.start(run, flow.definition(), {"payload": {}})
    return run


class TestCanvas:
    """Chains, groups and chords, and what is known to go wrong with them elsewhere."""

    def flow(self) -> tuple[Workflow, str]:
        """A chord of two chains and its body, and an alarm for any of its nodes."""
        flow = Workflow("chord")
        left = flow.chain(flow.add("a1", "t"), flow.add("a2", "t"))
        right = flow.chain(flow.add("b1", "t"), flow.add("b2", "t"))
        body = flow.add("body", "t")
        flow.chord(flow.group(left, right), body)
        flow.add("alarm", "t", on_failure=["a1", "a2", "b1", "b2"], join="any")
        return flow, "body"

    def test_a_chord_waits_for_the_ends_of_all_its_chains(self, runs: Runs) -> None:
        run = started(runs, self.flow()[0])

        runs.run_all()

        assert runs.ran.index("body") > max(runs.ran.index("a2"), runs.ran.index("b2"))
        assert (runs.facts(run).state, runs.states(run)["alarm"]) == ("succeeded", "skipped")

    @pytest.mark.parametrize("failed", ["a1", "b2"])
    @pytest.mark.parametrize("end", [DEAD, CANCELLED])
    def test_a_member_that_fails_early_in_a_chain_raises_the_alarm_and_leaves_nothing_waiting(
        self, runs: Runs, failed: str, end: JobState
    ) -> None:
        run = started(runs, self.flow()[0])

        runs.run_all({failed: str(end)})

        assert "alarm" in runs.ran
        assert runs.states(run)["body"] == "skipped"
        assert runs.facts(run).is_over
        assert {view.state for view in runs.nodes(run).values()} <= {"succeeded", "skipped", str(end)}

    def test_the_member_that_failed_is_named_by_its_run(self, runs: Runs) -> None:
        flow = Workflow("chord")
        members = flow.map("page", "t", [{"n": number} for number in range(20)])
        flow.chord(members, flow.add("body", "t"))
        run = started(runs, flow)

        runs.run_all({"page:13": "dead"})

        assert workflows.first_failures([run])[run].key == "page:13"
        assert runs.facts(run).state == "failed"
        plan = workflows.retry_plan(run)
        assert (plan.again, plan.waiting) == (("page:13",), ("body",))

    def test_the_body_runs_when_a_member_had_to_be_retried(self, runs: Runs) -> None:
        run = started(runs, self.flow()[0])
        while jobs := runs.lease():
            for job in jobs:
                if job.extras["node"] == "a1" and runs.ran.count("a1") == 1:
                    assert runs.fail(job, "retry") == "retry_wait"
                    runs.tell([job])
                    runs.engine.jobs.run_now(job.id)
                else:
                    runs.end(job)

        assert runs.ran.count("body") == 1
        assert runs.facts(run).state == "succeeded"

    def test_a_chord_in_a_chord_is_wired_as_its_parts_are(self, runs: Runs) -> None:
        flow = Workflow("nested")
        inner = flow.chord(flow.group(flow.add("x", "t"), flow.add("y", "t")), flow.add("inner", "t"))
        flow.chord(flow.group(inner, flow.add("z", "t")), flow.add("outer", "t"))
        run = started(runs, flow)

        runs.run_all()

        assert runs.ran.index("inner") > max(runs.ran.index("x"), runs.ran.index("y"))
        assert runs.ran[-1] == "outer"
        failing = started(runs, flow)
        runs.run_all({"y": "dead"})
        assert runs.states(failing)["outer"] == "skipped"
        assert (runs.facts(run).state, runs.facts(failing).state) == ("succeeded", "failed")

    def test_a_group_in_the_middle_of_a_chain_runs_beside_itself(self, runs: Runs) -> None:
        flow = Workflow("middle")
        flow.chain(flow.add("first", "t"), flow.group(flow.add("l", "t"), flow.add("r", "t")), flow.add("last", "t"))
        run = started(runs, flow)

        runs.end(*runs.lease())

        assert sorted(job.extras["node"] for job in runs.lease()) == ["l", "r"]
        assert runs.states(run)["last"] == "blocked"
