"""What people and time do to runs: cancel, pause, retry, signals, approvals, time limits."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.workflow import Definition, Node, Workflow
from jobs.engine import Engine
from jobs.engine.workflows import CLAIM_MS
from jobs.exceptions import WorkflowInvalid, WrongState
from jobs.runtime import controlling
from jobs.runtime.relaying import Relay
from jobs.services.deadlines import DeadlineService
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


class TestCancel:
    def test_what_waits_never_starts_what_runs_is_stopped_and_clean_ups_run(self, runs: Runs) -> None:
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

    def test_jobs_that_have_not_begun_end_at_once(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})

        cancel(runs, run)

        assert runs.lease() == []
        assert runs.facts(run).state == "cancelled"

    def test_told_twice_it_changes_nothing_and_a_run_that_is_over_refuses(self, runs: Runs) -> None:
        run = runs.start(*CLEAN)
        runs.lease()

        assert [cancel(runs, run), cancel(runs, run)] == [True, False]

        over = runs.start({"key": "a"})
        runs.run_all()
        with pytest.raises(WrongState) as refused:
            cancel(runs, over)
        assert refused.value.state == "succeeded"

    def test_a_list_that_has_not_opened_never_does_and_one_that_has_ends_with_its_items(self, runs: Runs) -> None:
        run = runs.start(
            {"key": "early", "each": [1, 2]}, {"key": "a"}, {"key": "late", "each": [1], "depends_on": ["a"]}
        )
        leased = runs.lease()

        cancel(runs, run)
        for job in leased:
            runs.end(job, "cancelled")

        states = runs.states(run)
        assert (states["early"], states["late"], states["early:0"]) == ("cancelled", "cancelled", "cancelled")
        assert "late:0" not in states
        assert runs.facts(run).state == "cancelled"

    def test_nobody_waits_for_a_signal_or_a_person_any_more(self, runs: Runs) -> None:
        run = runs.start({"key": "go", "type": "", "approval": "Go?"}, {"key": "paid", "type": "", "signal": "paid"})

        cancel(runs, run)

        assert runs.states(run) == {"go": "cancelled", "paid": "cancelled"}
        assert runs.facts(run).state == "cancelled"
        assert runs.engine.run_control.waiting(run) == []

    def test_a_cancel_that_was_left_half_told_is_finished_by_a_service(self, runs: Runs, clock: ManualClock) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()
        runs.engine.workflows.touch(run)
        runs.engine.run_control.cancel(run, WHY)  # and here the process died

        clock.advance(7)
        RelayService(runs.engine).tick()

        assert runs.engine.jobs.get(a.id).cancel_requested
        assert runs.states(run)["b"] == "cancelled"

    def test_what_a_relay_that_died_was_handed_does_not_run(self, runs: Runs, clock: ManualClock) -> None:
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


class TestPause:
    def test_nothing_becomes_a_job_until_the_run_goes_on(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()

        assert runs.engine.run_control.pause(run, WHY)
        runs.end(a)

        assert runs.lease() == []
        assert runs.facts(run).paused == WHY
        assert not runs.engine.run_control.pause(run, {**WHY, "by": "bob"})
        assert runs.facts(run).paused == WHY  # who came first

        assert runs.engine.run_control.pause(run, None)
        runs.relay.pursue(run)
        runs.run_all()
        assert runs.ran == ["a", "b"]
        assert runs.facts(run).state == "succeeded"

    def test_a_cancelled_run_is_not_paused_any_more_and_cannot_be(self, runs: Runs) -> None:
        run = runs.start(*CLEAN)
        runs.lease()
        runs.engine.run_control.pause(run, WHY)

        cancel(runs, run)

        assert runs.facts(run).paused is None
        with pytest.raises(WrongState):
            runs.engine.run_control.pause(run, WHY)


def retry(runs: Runs, run: str, node: str | None = None) -> None:
    controlling.retry(runs.relay, run, node)


class TestRetry:
    def test_what_failed_runs_again_and_what_was_skipped_because_of_it(self, runs: Runs) -> None:
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

    def test_from_a_node_everything_after_it_runs_again_with_what_it_gives_now(self, runs: Runs) -> None:
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

    def test_it_may_fail_again_and_be_retried_again(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        for _ in range(3):
            runs.run_all({"a": "dead"})
            assert runs.states(run) == {"a": "dead", "b": "skipped"}
            retry(runs, run)
        runs.run_all()

        assert runs.ran == ["a"] * 4 + ["b"]

    def test_a_cancelled_run_goes_on(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()
        cancel(runs, run)
        runs.end(a, "cancelled")

        retry(runs, run)
        runs.run_all()

        assert runs.ran == ["a", "a", "b"]
        assert runs.facts(run).state == "succeeded"
        assert runs.facts(run).cancelled is None

    def test_a_list_opens_anew_and_may_be_shorter(self, runs: Runs) -> None:
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

    def test_one_item_runs_again_and_what_comes_after_the_list(self, runs: Runs) -> None:
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
    def test_what_cannot_be_retried_says_why(
        self, runs: Runs, node: str | None, error: type[Exception], message: str
    ) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()
        runs.end(a)
        runs.lease()

        with pytest.raises(error, match=message):
            retry(runs, run, node)

    def test_news_of_the_life_before_change_nothing(self, runs: Runs) -> None:
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
        self, runs: Runs, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
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

    def test_a_job_that_retention_took_is_made_anew(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        runs.run_all({"a": "dead"})
        job = runs.nodes(run)["a"].job or ""
        runs.engine.jobs.discard(job)

        retry(runs, run)
        runs.run_all()

        assert runs.ran == ["a", "a"]
        assert runs.facts(run).state == "succeeded"


class TestSignals:
    def test_a_signal_ends_what_waits_for_it_with_its_payload(self, runs: Runs) -> None:
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

    def test_one_that_comes_before_it_is_waited_for_is_kept(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "paid", "type": "", "signal": "payment", "depends_on": ["a"]})
        runs.engine.run_control.signal(run, "payment", 5)

        runs.run_all()

        assert runs.facts(run).state == "succeeded"
        assert runs.engine.workflows.results(run) == {"paid": 5}

    def test_all_that_wait_for_it_hear_it(self, runs: Runs) -> None:
        inner = Workflow("inner")
        inner.signal("paid", "payment")
        run = runs.start({"key": "shop", "type": "", "workflow": inner.as_dict(), "each": list(range(260))})

        assert runs.engine.run_control.signal(run, "payment", None) == 260
        runs.relay.pursue(run)

        assert runs.facts(run).state == "succeeded"


GO: list[dict[str, Any]] = [
    {"key": "go", "type": "", "approval": "Deploy?", "timeout": 60},
    {"key": "deploy", "depends_on": ["go"]},
    {"key": "sorry", "on_failure": ["go"], "payload": {"why": {"$from": "go.error.message"}}},
]


class TestWaits:
    def test_one_who_decides_is_enough(self, runs: Runs) -> None:
        run = runs.start(*GO)

        assert runs.engine.run_control.decide(run, "go", result={"by": "ann"}) == "succeeded"
        with pytest.raises(WrongState) as refused:
            runs.engine.run_control.decide(run, "go", error={"type": "Rejected"})
        runs.relay.pursue(run)

        assert refused.value.state == "succeeded"
        assert [job.extras["node"] for job in runs.lease()] == ["deploy"]

    def test_a_wait_that_takes_too_long_takes_the_way_of_failures(self, runs: Runs, clock: ManualClock) -> None:
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

    def test_or_goes_on_where_the_workflow_says_so(self, runs: Runs, clock: ManualClock) -> None:
        run = runs.start({"key": "paid", "type": "", "signal": "paid", "timeout": 5, "on_timeout": "continue"})

        clock.advance(6)
        DeadlineService(runs.engine).tick()

        assert runs.facts(run).state == "succeeded"
        assert runs.engine.workflows.results(run) == {"paid": {"timed_out": True}}

    def test_one_that_was_decided_is_not_over_later(self, runs: Runs, clock: ManualClock) -> None:
        run = runs.start(*GO)
        runs.engine.run_control.decide(run, "go", result=True)
        runs.relay.pursue(run)

        clock.advance(61)
        DeadlineService(runs.engine).tick()

        assert runs.states(run)["go"] == "succeeded"

    def test_a_node_that_is_retried_waits_as_long_again(self, runs: Runs, clock: ManualClock) -> None:
        run = runs.start({"key": "go", "type": "", "approval": "Deploy?", "timeout": 60})
        clock.advance(61)
        DeadlineService(runs.engine).tick()
        assert runs.facts(run).state == "failed"

        retry(runs, run)
        DeadlineService(runs.engine).tick()

        assert runs.states(run)["go"] == "ready"
        clock.advance(61)
        DeadlineService(runs.engine).tick()
        assert runs.facts(run).state == "failed"


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
            retry(runs, run)

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

        retry(runs, run, "one:a")
        runs.run_all()

        assert sorted(runs.ran) == ["one:a", "one:after", "one:deep:after"]
        assert runs.states(run)["two:after"] == runs.states(run)["two:deep:after"] == "cancelled"
        retry(runs, run)
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
