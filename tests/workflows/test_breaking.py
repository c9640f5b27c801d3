"""What happens to runs under several hands at once, and under nodes that cannot be dealt with."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import job
from jobs.api.workflow_checks import validate
from jobs.conf import get_settings
from jobs.core.parents import Ended
from jobs.core.workflow import TemplateError
from jobs.core.workflow.templates import value
from jobs.engine import Engine, run_nodes
from jobs.engine.workflows import CLAIM_MS, STEP
from jobs.exceptions import StoreRefused, WorkflowInvalid
from jobs.runtime import controlling
from jobs.runtime.growing import grow
from jobs.runtime.relaying import Relay
from jobs.services.deadlines import LONGEST_SLEEP, DeadlineService
from jobs.services.relay import EVERY_SECONDS, RelayService
from tests.support.clock import ManualClock
from tests.support.runs import Runs


@job("breaking.node")
def node() -> None: ...


def test_two_nodes_that_add_the_same_key_do_not_mix_its_parents(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b"}, {"key": "c"})
    jobs = {leased.extras["node"]: leased for leased in runs.lease()}
    grow(runs.relay, run, "a", [{"key": "x", "type": "breaking.node", "depends_on": ["a"]}])
    grow(runs.relay, run, "b", [{"key": "x", "type": "breaking.node", "depends_on": ["b", "c"]}])

    runs.end(jobs["c"])
    assert runs.lease() == []

    runs.end(jobs["a"])
    assert [leased.extras["node"] for leased in runs.lease()] == ["x"]


@pytest.mark.parametrize("position", ["0000000001", "9" * 10, "1", "-1", "١"])
def test_a_position_that_is_not_there_is_an_error_of_the_template(position: str) -> None:
    with pytest.raises(TemplateError, match="a list of 1"):
        value({"$from": f"a.result.{position}"}, {}, {"a": Ended("succeeded", [1])})


def test_members_of_groups_have_room_for_their_keys(runs: Runs) -> None:
    inner: dict[str, Any] = {"name": "inner", "nodes": [{"key": "k" * 98, "type": "breaking.node", "each": [1, 2]}]}
    run = runs.start({"key": "g" * 100, "workflow": inner, "type": ""})

    runs.run_all()

    assert runs.facts(run).state == "succeeded"
    assert f"{'g' * 100}:{'k' * 98}:1" in runs.states(run)


def test_groups_in_groups_without_end_are_refused_where_they_lie_too_deep(runs: Runs) -> None:
    nodes: list[dict[str, Any]] = [{"key": "leaf", "type": "breaking.node"}]
    for _ in range(40):
        nodes = [{"key": "group-1", "workflow": {"name": "inner", "nodes": nodes}}]
    run = runs.start({**nodes[0], "type": ""})

    runs.run_all()

    assert runs.facts(run).state == "failed"
    messages = [view.error["message"] for view in runs.nodes(run).values() if view.error]
    assert any("lies too deep" in message for message in messages), messages


def test_what_is_nested_beyond_reason_is_refused(runs: Runs) -> None:
    payload: dict[str, Any] = {}
    nodes: list[dict[str, Any]] = [{"key": "leaf", "type": "breaking.node"}]
    for _ in range(2_000):
        payload = {"in": payload}
        nodes = [{"key": "g", "workflow": {"name": "inner", "nodes": nodes}}]

    for bad in (nodes, [{"key": "a", "type": "breaking.node", "payload": payload}]):
        with pytest.raises(WorkflowInvalid, match=r"nested (too deep|deeper than)"):
            validate({"name": "deep", "nodes": bad})


def test_a_durability_that_nobody_keeps_is_refused_before_the_run() -> None:
    with pytest.raises(WorkflowInvalid, match="Node 'a': durability \"disk\" is not available"):
        validate({"name": "safe", "nodes": [{"key": "a", "type": "breaking.node", "durability": "disk"}]})


def test_failures_with_many_children_are_judged_in_short_calls(
    runs: Runs, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 50 failed nodes has 140 children, none of which may run: 7,000 looks."""
    dead = [f"d{number}" for number in range(50)]
    children = ({"key": f"c{number}", "on_failure": [*dead, "good"]} for number in range(140))
    run = runs.start({"key": "good"}, *({"key": key} for key in dead), *children)
    reads: list[int] = []
    step = engine.workflows.step

    def counted(*arguments: Any, **options: Any) -> Any:
        before = hash_reads(engine)
        reply = step(*arguments, **options)
        reads.append(hash_reads(engine) - before)
        return reply

    monkeypatch.setattr(engine.workflows, "step", counted)
    runs.run_all(lambda key: "succeeded" if key == "good" else "dead")

    assert runs.facts(run).state == "failed"
    assert max(reads) < 10 * STEP


def hash_reads(engine: Engine) -> int:
    return int(engine.store.client.info("commandstats")["cmdstat_hget"]["calls"])


def test_a_run_that_cannot_go_on_keeps_no_other(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("broken", "sound"):
        runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, id=run)
    for leased in runs.lease():
        runs.end(leased, tell=False)
    step = engine.workflows.step

    def broken(run_id: str, *arguments: Any, **options: Any) -> Any:
        if run_id == "broken":
            raise IndexError("nobody thought of this")
        return step(run_id, *arguments, **options)

    monkeypatch.setattr(engine.workflows, "step", broken)
    service = RelayService(engine)
    for _ in range(3):
        clock.advance(EVERY_SECONDS)
        service.tick()
    runs.run_all()
    assert runs.states("sound") == {"a": "succeeded", "b": "succeeded"}

    monkeypatch.undo()
    clock.advance(EVERY_SECONDS * 2)
    service.tick()
    runs.run_all()
    assert runs.states("broken") == {"a": "succeeded", "b": "succeeded"}


def test_a_deadline_that_cannot_be_met_keeps_no_other_and_is_tried_in_peace(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (runs.start({"key": "ask", "approval": "?", "timeout": 1, "type": ""}) for _ in range(2))
    decide = engine.run_control.decide

    def broken(run_id: str, *arguments: Any, **options: Any) -> Any:
        if run_id == first:
            raise IndexError("nobody thought of this")
        return decide(run_id, *arguments, **options)

    monkeypatch.setattr(engine.run_control, "decide", broken)
    service = DeadlineService(engine)
    clock.advance(2)

    assert service.tick() == {"met": 1}
    assert service.every == LONGEST_SLEEP
    assert runs.facts(second).state == "failed"


def test_a_list_for_which_the_run_has_no_room_is_refused_whole(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """A run may have ten times twenty nodes; what is written down in pieces is counted before the first."""
    monkeypatch.setattr(run_nodes, "EDGES", 5)
    settings.SCHEDULER = {**settings.SCHEDULER, "WORKFLOW_NODES": 20}
    runs.engine.workflows._settings = get_settings()
    lists = [{"key": f"list-{number}", "each": list(range(20))} for number in range(10)]
    run = runs.start(*lists, {"key": "alarm", "on_failure": ["list-9"]})

    runs.run_all()

    assert runs.facts(run).state == "succeeded"
    assert [key for key, state in runs.states(run).items() if state == "dead"] == ["list-9"]
    assert not any(key.startswith("list-9:") for key in runs.states(run))


def test_a_node_whose_edges_were_half_written_down_when_its_adder_died_is_finished_by_a_service(
    runs: Runs, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_nodes, "EDGES", 5)
    parents = [f"p{number}" for number in range(12)]
    run = runs.start({"key": "a"}, *({"key": key} for key in parents))
    step, calls = runs.engine.workflows._run, []

    def dies(name: str, *arguments: Any, **options: Any) -> Any:
        calls.append(name)
        if name == "workflow_add" and calls.count(name) == 2:
            raise SystemExit
        return step(name, *arguments, **options)

    leased = runs.lease()
    monkeypatch.setattr(runs.engine.workflows, "_run", dies)
    with pytest.raises(SystemExit):
        grow(runs.relay, run, "a", [{"key": "x", "type": "breaking.node", "depends_on": parents}])
    monkeypatch.undo()
    for each in leased:  # whoever added it adds nothing a second time
        runs.end(each)
    assert runs.states(run)["x"] == "blocked"

    clock.advance(CLAIM_MS / 1000 + EVERY_SECONDS)
    RelayService(runs.engine).tick()
    runs.run_all()

    assert runs.ran.count("x") == 1
    assert runs.facts(run).state == "succeeded"


def test_members_of_a_list_that_could_not_open_do_not_open_it(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else took the room between two pieces: what is there already runs, and the list stays dead."""
    monkeypatch.setattr(run_nodes, "EDGES", 5)
    step, calls = runs.engine.workflows._run, []

    def no_room(name: str, *arguments: Any, **options: Any) -> Any:
        calls.append(name)
        if name == "workflow_add" and calls.count(name) == 3:  # the second piece of the members
            raise WorkflowInvalid("the run would have too many")
        return step(name, *arguments, **options)

    monkeypatch.setattr(runs.engine.workflows, "_run", no_room)
    run = runs.start({"key": "list", "each": list(range(12))}, {"key": "alarm", "on_failure": ["list"]})
    monkeypatch.undo()
    runs.run_all()

    assert runs.facts(run).is_over
    assert (runs.states(run)["list"], runs.states(run)["alarm"]) == ("dead", "succeeded")


def test_a_server_that_refuses_is_no_fault_of_the_group_that_was_to_open(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise StoreRefused("The server is out of memory (maxmemory).")

    monkeypatch.setattr(engine.run_control, "unfold", refused)
    with pytest.raises(StoreRefused):
        runs.start({"key": "list", "each": [1, 2]}, id="run")
    assert runs.states("run") == {"list": "ready"}

    monkeypatch.undo()
    clock.advance(CLAIM_MS / 1000 + 1)
    RelayService(engine).tick()
    runs.run_all()
    assert runs.facts("run").state == "succeeded"


def test_a_retry_that_comes_too_late_repeats_nothing(
    runs: Runs, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    runs.run_all({"a": "dead"})
    redo = engine.run_control.redo

    def slept(*arguments: Any) -> None:
        monkeypatch.undo()
        controlling.retry(runs.relay, run)  # somebody else is faster
        runs.run_all()
        redo(*arguments)

    monkeypatch.setattr(engine.run_control, "redo", slept)
    controlling.retry(runs.relay, run)
    runs.run_all()

    assert runs.ran == ["a", "a", "b"]
    assert runs.facts(run).state == "succeeded"


def test_a_resume_that_dies_half_way_is_finished_by_a_service(
    runs: Runs, engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    engine.run_control.pause(run, {"by": "ann"})
    runs.run_all()
    monkeypatch.setattr(Relay, "pursue", die)
    with pytest.raises(SystemExit):
        controlling.resume(runs.relay, run)
    monkeypatch.undo()

    clock.advance(CLAIM_MS / 1000 + EVERY_SECONDS)
    RelayService(engine).tick()
    runs.run_all()

    assert runs.facts(run).is_over


def test_news_that_change_while_they_are_told_are_told_again(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"})
    (a,) = runs.lease()
    runs.end(a, "dead", tell=False)
    before = engine.outbox.read(a.route, [a.id])
    engine.workflows.step(run, before)
    engine.jobs.resubmit(a.id)
    engine.outbox.told(a.route, before)

    runs.tell([a])

    assert runs.states(run) == {"a": "ready"}


def die(*_: Any) -> None:
    raise SystemExit
