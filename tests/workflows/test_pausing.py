"""A paused run: nothing of it starts, wherever its jobs stand, and nothing else is held back."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.job import JobSpec
from jobs.engine import Engine, pauses
from jobs.engine.workflows import CLAIM_MS, LOOK_MS
from jobs.exceptions import WrongState
from jobs.runtime import controlling
from jobs.services.relay import SILENT_MS, RelayService
from jobs.store.keys import partition_keys
from tests.support.clock import ManualClock
from tests.support.runs import Runs

WHY = {"by": "ann", "at": "2026-01-01T00:00:00.000Z", "reason": "wrong day"}


def pause(runs: Runs, run: str, *, wait: float | None = None) -> bool:
    return controlling.pause(runs.relay, run, WHY, wait=wait)


def resume(runs: Runs, run: str) -> bool:
    return controlling.resume(runs.relay, run)


def leased(runs: Runs) -> list[str]:
    return [job.extras.get("node", "alone") for job in runs.lease()]


def halted(engine: Engine) -> list[Any]:
    """What partitions still know of pauses of runs."""
    keys = [partition_keys(engine.store.namespace, route) for route in engine.topology.partitions()]
    return [found for each in keys if (found := engine.store.client.hgetall(each.halted))]


def test_nothing_becomes_a_job_until_the_run_goes_on(runs: Runs) -> None:
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


def test_a_cancelled_run_is_not_paused_any_more_and_cannot_be(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "clean", "on_complete": ["a"], "always": True})
    runs.lease()
    runs.engine.run_control.pause(run, WHY)

    controlling.cancel(runs.relay, run, WHY)

    assert runs.facts(run).paused is None
    with pytest.raises(WrongState):
        runs.engine.run_control.pause(run, WHY)


def test_jobs_that_were_ready_wait_and_all_others_start(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a", "priority": 1}, {"key": "b"}, {"key": "far", "pool": "background"})
    other = runs.start({"key": "c"})
    runs.engine.jobs.enqueue(JobSpec(type="t"), [b"{}"])

    assert pause(runs, run)
    assert not pause(runs, run)

    assert leased(runs) == ["c", "alone"]
    assert runs.facts(other).paused is None
    assert resume(runs, run)
    assert not resume(runs, run)
    assert leased(runs) == ["far", "a", "b"]


def test_what_comes_due_meanwhile_waits(runs: Runs, clock: ManualClock) -> None:
    run = runs.start({"key": "delayed", "delay": 5}, {"key": "flaky", "max_retries": 3}, {"key": "lost"})
    flaky, lost = sorted(runs.lease(), key=lambda job: job.extras["node"])
    pause(runs, run, wait=0)

    assert runs.fail(flaky, "retry", delay_ms=1_000) == "retry_wait"
    runs.engine.leases.release(lost.route, [(lost.id, lost.token)])
    clock.advance(60)

    assert leased(runs) == []
    resume(runs, run)
    assert sorted(leased(runs)) == ["delayed", "flaky", "lost"]


def test_it_is_acknowledged_when_what_was_handed_out_has_begun(
    runs: Runs, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"}, {"key": "b"})
    a, b = runs.lease()
    looks: list[float] = []

    def look(seconds: float) -> None:
        """Between two looks: one begins, then the other is handed back."""
        if not looks:
            engine.leases.start(a.route, [(a.id, a.token, a.leased_at)])
        else:
            engine.leases.release(b.route, [(b.id, b.token)])
        looks.append(seconds)

    monkeypatch.setattr(pauses.time, "sleep", look)
    pause(runs, run)

    assert len(looks) == 2
    assert leased(runs) == []


def test_nodes_that_a_relay_was_handed_are_waited_for_and_held_back(
    runs: Runs, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"], "pool": "late"})
    (a,) = runs.lease()
    name, slept = engine.workflows.name, []

    def paused_meanwhile(*arguments: Any) -> Any:
        """The relay was handed b when somebody pauses the run, and makes its job while he waits."""
        monkeypatch.undo()

        def go_on(seconds: float) -> None:
            slept.append(seconds)
            monkeypatch.undo()
            reply = engine.workflows.step(run)
            assert reply.claimed == 1
            ids = name(*arguments)
            births, _ = runs.relay._births(run, handed)
            made = runs.relay._made([births[0]._replace(id=ids[0])], not_after=reply.now + 4_000)
            engine.workflows.settle(run, made)

        monkeypatch.setattr(controlling, "sleep", go_on)
        pause(runs, run)
        return [""]

    handed: list[Any] = []
    step = engine.workflows.step

    def noted(*arguments: Any, **options: Any) -> Any:
        reply = step(*arguments, **options)
        handed.extend(reply.handed)
        return reply

    monkeypatch.setattr(engine.workflows, "step", noted)
    monkeypatch.setattr(engine.workflows, "name", paused_meanwhile)
    runs.end(a)

    assert slept
    assert leased(runs) == []
    resume(runs, run)
    assert leased(runs) == ["b"]


def test_what_is_to_run_again_waits_for_the_end_of_the_pause_however_long_that_is(
    runs: Runs, clock: ManualClock
) -> None:
    run = runs.start({"key": "a"}, {"key": "b"})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")
    pause(runs, run, wait=0)
    controlling.retry(runs.relay, run, "a")

    clock.advance(SILENT_MS / 1000 + LOOK_MS / 1000)
    RelayService(runs.engine).tick()
    assert runs.states(run)["a"] == "ready"

    resume(runs, run)
    assert leased(runs) == ["a"]


def test_a_cancelled_run_ends_what_stood_aside_and_runs_its_clean_up(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"}, {"key": "clean", "on_complete": ["a"], "always": True})
    pause(runs, run)
    assert leased(runs) == []

    controlling.cancel(runs.relay, run, WHY)

    assert runs.states(run) == {"a": "cancelled", "clean": "ready"}
    runs.run_all()
    assert (runs.ran, runs.facts(run).state) == (["clean"], "cancelled")
    assert halted(engine) == []


def test_a_run_that_ends_is_paused_no_more_and_partitions_forget_it(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"})
    (a,) = runs.lease()
    engine.leases.start(a.route, [(a.id, a.token, a.leased_at)])
    pause(runs, run)
    assert halted(engine) == [{run.encode(): b"1"}]

    runs.end(a, "dead")

    assert (runs.facts(run).state, runs.facts(run).paused) == ("failed", None)
    assert halted(engine) == []
    controlling.retry(runs.relay, run)
    assert leased(runs) == ["a"]


def test_a_job_says_that_its_run_is_paused(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"})
    pause(runs, run)
    assert leased(runs) == []

    reason = engine.explain.job(runs.nodes(run)["a"].job or "")

    assert reason is not None
    assert (reason.code, "unknown_type" in reason.also) == ("run_paused", False)
    assert reason.message == f"Workflow run {run} is paused by ann: wrong day."


def test_what_stands_aside_can_be_given_another_priority(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"}, {"key": "b"})
    pause(runs, run)
    assert leased(runs) == []

    job_id = runs.nodes(run)["b"].job or ""
    assert engine.jobs.prioritize_many([job_id], 5) == {job_id: None}
    resume(runs, run)

    assert leased(runs) == ["b", "a"]


def test_an_older_word_of_somebody_slow_does_not_let_go_of_a_newer_pause(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"})
    pause(runs, run)
    nodes = engine.workflows.all_nodes

    def paused_again(run_id: str) -> Any:
        """Who resumes has read that the run goes on, when somebody else pauses it anew."""
        monkeypatch.undo()
        pause(runs, run)
        return nodes(run_id)

    monkeypatch.setattr(engine.workflows, "all_nodes", paused_again)
    resume(runs, run)

    assert leased(runs) == []
    clock.advance(CLAIM_MS / 1000 + 1)
    RelayService(engine).tick()
    assert leased(runs) == []
    resume(runs, run)
    assert leased(runs) == ["a"]
