"""Runs that grow while they go on: lists, sub-workflows, and nodes that handlers add."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import job
from jobs.core.workflow import Workflow
from jobs.exceptions import WorkflowInvalid, WrongState
from jobs.runtime.growing import grow
from tests.support.runs import Runs


@job("growth.node")
def node() -> None: ...


FROM_LIST = {"each": {"$from": "list.result"}, "payload": {"n": {"$from": "each.item"}}, "depends_on": ["list"]}


def test_a_list_that_a_parent_found_is_run_item_by_item_and_what_follows_gets_all_results(runs: Runs) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST}, {"key": "merge", "depends_on": ["page"]})

    runs.run_all(**{"list": [3, 4, 5], "page:0": "a", "page:2": "c"})

    assert sorted(runs.ran) == ["list", "merge", "page:0", "page:1", "page:2"]
    assert runs.ran[-1] == "merge"
    assert runs.facts(run).state == "succeeded"
    assert runs.engine.workflows.parents(run, ["page"])["page"].result == ["a", None, "c"]


def test_an_empty_list_has_succeeded(runs: Runs) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST}, {"key": "merge", "depends_on": ["page"]})

    runs.run_all(list=[])

    assert runs.ran == ["list", "merge"]
    assert runs.states(run)["page"] == "succeeded"
    assert runs.engine.workflows.parents(run, ["page"])["page"].result == []


def test_a_list_of_ten_thousand(runs: Runs) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST}, {"key": "merge", "depends_on": ["page"]})

    while leased := runs.lease():
        runs.end_many(leased, {"list": list(range(10_000))})

    assert len(runs.ran) == len(set(runs.ran)) == 10_002
    assert runs.ran[-1] == "merge"
    assert runs.facts(run).counts == {"blocked": 0, "ready": 0, "succeeded": 10_003}
    assert runs.facts(run).state == "succeeded"


def test_a_list_over_the_limit_is_refused_where_it_would_open(runs: Runs) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST}, {"key": "alarm", "on_failure": ["page"]})

    runs.run_all(list=list(range(10_001)))

    assert runs.ran == ["list", "alarm"]
    assert runs.nodes(run)["page"].error == {
        "type": "WorkflowInvalid",
        "message": "Node 'page' would open into 10,001 nodes: at most 10,000",
        "traceback": "",
    }


def test_what_is_no_list_fails_the_node_and_says_so(runs: Runs) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST})

    runs.run_all(list={"rows": 3})

    error = runs.nodes(run)["page"].error
    assert error is not None
    assert error["message"].startswith("Node 'page' is to be run for each of")
    assert runs.facts(run).state == "failed"


def test_one_dead_item_fails_the_whole_list(runs: Runs) -> None:
    run = runs.start(
        {"key": "list"},
        {"key": "page", **FROM_LIST},
        {"key": "merge", "depends_on": ["page"]},
        {"key": "alarm", "on_failure": ["page"]},
    )

    runs.run_all({"page:1": "dead"}, list=[1, 2, 3])

    states = runs.states(run)
    assert (states["page"], states["merge"], states["alarm"]) == ("dead", "skipped", "succeeded")
    ended = runs.engine.workflows.parents(run, ["page"])["page"]
    assert ended.error["message"] == "1 of the nodes in 'page' failed"


def test_a_list_does_not_end_before_all_of_its_items_are_there(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.start({"key": "list"}, {"key": "page", **FROM_LIST}, {"key": "merge", "depends_on": ["page"]})
    add = runs.engine.workflows.add

    def slow_add(run_id: str, nodes: Any, **more: Any) -> int:
        one, *rest = nodes
        added = add(run_id, [one], **more)
        runs.relay.pursue(run_id)
        for first in runs.lease():  # the first item is over before the second one is known
            runs.end(first)
        return added + add(run_id, rest, **more)

    monkeypatch.setattr(runs.engine.workflows, "add", slow_add)

    runs.run_all(list=[1, 2])

    assert runs.ran == ["list", "page:0", "page:1", "merge"]
    assert runs.facts(run).state == "succeeded"


def sub_workflow() -> dict[str, Any]:
    inner = Workflow("inner")
    first = inner.add("a", "test.node", {"day": inner.payload("day")})
    inner.add("b", "test.node", {"from_a": first.result()}, depends_on=first)
    return inner.as_dict()


def test_a_sub_workflow_runs_as_one_node(runs: Runs) -> None:
    run = runs.start(
        {"key": "sub", "type": "", "workflow": sub_workflow(), "payload": {"day": {"$from": "run.payload.day"}}},
        {"key": "after", "depends_on": ["sub"], "payload": {"x": {"$from": "sub.result.b"}}},
        payload={"day": "monday"},
    )
    (a,) = runs.lease()
    assert (a.extras["node"], a.payload) == ("sub:a", b'{"day":"monday"}')

    runs.end(a, result=7)
    runs.run_all(**{"sub:b": "well"})

    assert runs.ran == ["sub:a", "sub:b", "after"]
    job = runs.engine.jobs.find(runs.nodes(run)["after"].job or "")
    assert job is not None
    assert job.payload == {"x": "well"}
    assert runs.nodes(run)["sub:b"].scope == "sub"
    assert runs.engine.workflows.results(run) == {"after": None}


def test_a_sub_workflow_for_each_of_a_list(runs: Runs) -> None:
    runs.start(
        {
            "key": "shop",
            "type": "",
            "workflow": sub_workflow(),
            "each": [1, 2],
            "payload": {"day": {"$from": "each.item"}},
        },
        {"key": "after", "depends_on": ["shop"]},
    )

    runs.run_all()

    assert sorted(runs.ran[:4]) == ["shop:0:a", "shop:0:b", "shop:1:a", "shop:1:b"]
    assert runs.ran[4:] == ["after"]


def test_a_failure_inside_is_one_outside(runs: Runs) -> None:
    run = runs.start(
        {"key": "sub", "type": "", "workflow": sub_workflow(), "payload": {"day": 1}},
        {"key": "alarm", "on_failure": ["sub"]},
    )

    runs.run_all({"sub:a": "dead"})

    assert runs.states(run) == {"sub": "dead", "alarm": "succeeded", "sub:a": "dead", "sub:b": "skipped"}
    assert runs.facts(run).state == "succeeded"  # the alarm covers it


class TestAddedByAHandler:
    def test_added_nodes_run_and_are_waited_for(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        (a,) = runs.lease()

        keys = grow(
            runs.relay,
            run,
            "a",
            [{"key": "more", "type": "growth.node", "depends_on": ["a"]}, {"key": "now", "type": "growth.node"}],
        )

        assert keys == ["more", "now"]
        assert [job.extras["node"] for job in runs.lease()] == ["now"]
        runs.end(a)
        assert runs.facts(run).state == "running"

    def test_an_attempt_that_is_repeated_adds_nothing_twice(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        runs.lease()
        for _ in range(2):
            grow(runs.relay, run, "a", [{"key": "more", "type": "growth.node", "depends_on": ["a"]}])

        assert runs.facts(run).total == 2

    def test_inside_a_group_they_become_members_of_it(self, runs: Runs) -> None:
        run = runs.start(
            {"key": "sub", "type": "", "workflow": sub_workflow(), "payload": {"day": 1}},
            {"key": "after", "depends_on": ["sub"]},
        )
        (a,) = runs.lease()

        assert grow(runs.relay, run, "sub:a", [{"key": "c", "type": "growth.node", "depends_on": ["b"]}]) == ["sub:c"]
        runs.end(a)
        runs.run_all()

        assert runs.ran == ["sub:a", "sub:b", "sub:c", "after"]

    @pytest.mark.parametrize(
        ("node", "message"),
        [
            ({"key": "x", "type": "growth.node", "depends_on": ["b"]}, "waits for 'b', which is no node of the run"),
            ({"key": "x", "type": "growth.noed"}, "No job type 'growth.noed' is registered"),
            ({"key": "x", "type": "growth.node", "poll": "p"}, "has no field 'poll'"),
        ],
    )
    def test_what_cannot_be_added_is_refused(self, runs: Runs, node: dict[str, Any], message: str) -> None:
        run = runs.start({"key": "a"})
        runs.lease()

        with pytest.raises(WorkflowInvalid, match=message):
            grow(runs.relay, run, "a", [node])

    def test_a_node_that_is_over_adds_nothing(self, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        (a,) = runs.lease()
        runs.end(a)

        with pytest.raises(WrongState, match=r"Node 'a' of run .* is over"):
            grow(runs.relay, run, "a", [{"key": "x", "type": "growth.node"}])
