"""What is no workflow is refused with the names of its nodes, through whichever door it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from jobs import Workflow, job, workflows
from jobs.engine import Engine
from jobs.exceptions import WorkflowInvalid
from jobs.models import Workflow as StoredWorkflow
from jobs.registry import registry
from tests.admin.test_workflow import form
from tests.commands.conftest import Cli, cli

pytestmark = pytest.mark.django_db
__all__ = ["cli"]  # a fixture

Door = Callable[[list[dict[str, Any]]], tuple[str, set[str]]]
"""Takes nodes and answers what was said, and which nodes it names."""

LINE: list[dict[str, Any]] = [{"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "depends_on": ["b"]}]
FAULTS: dict[str, tuple[list[dict[str, Any]], str, set[str]]] = {
    "a cycle of three": (
        [{**LINE[0], "depends_on": ["c"]}, *LINE[1:]],
        "3 nodes wait for each other",
        {"a", "b", "c"},
    ),
    "an unknown parent": (
        [*LINE, {"key": "d", "depends_on": ["e"]}],
        "Node 'd' waits for 'e', which is no node",
        {"d", "e"},
    ),
    "a key twice": ([*LINE, {"key": "b"}], "'b'", {"b"}),
    "an edge to itself": ([*LINE, {"key": "d", "depends_on": ["d"]}], "Node 'd' waits for itself", {"d"}),
    "a node too many": ([*LINE, {"key": "d"}, {"key": "e"}], "5 nodes are too many: at most 4", set()),
}


@pytest.fixture(autouse=True)
def _limit(settings: Any) -> Iterator[None]:
    settings.SCHEDULER = {**settings.SCHEDULER, "WORKFLOW_NODES": 4}

    def step() -> None: ...

    with registry.restored():
        job("refusals.step")(step)
        yield


def document(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "w", "nodes": [{"type": "refusals.step", **node} for node in nodes]}


def told(act: Callable[[], object]) -> tuple[str, set[str]]:
    with pytest.raises(WorkflowInvalid) as refused:
        act()
    return str(refused.value), {node for problem in refused.value.problems for node in problem.nodes}


def built(nodes: list[dict[str, Any]]) -> Workflow:
    flow = Workflow("w")
    for node in nodes:
        flow.add(type="refusals.step", **node)
    return flow


COMMAND = pytest.param("command", marks=pytest.mark.django_db(transaction=True))  # it ends with its connections closed


@pytest.fixture(params=["builder", "json", "stored", "started", COMMAND, "admin"])
def door(request: pytest.FixtureRequest, engine: Engine, admin_client: Client, cli: Cli) -> Door:
    def command(nodes: list[dict[str, Any]]) -> tuple[str, set[str]]:
        file = json.dumps(document(nodes)).encode()
        refused = cli("workflows", "validate", "--file", "-", "--json", stdin=file)
        assert (refused.code, refused.error["code"]) == (2, "workflow_invalid")
        return refused.error["message"], {node for problem in refused.json["problems"] for node in problem["nodes"]}

    def admin(nodes: list[dict[str, Any]]) -> tuple[str, set[str]]:
        rows = [
            {"key": node["key"], "job_type": "refusals.step", "payload": "{}", "join": "all", "more": "{}"}
            for node in nodes
        ]
        edges = [(node["key"], "on_success", parent) for node in nodes for parent in node.get("depends_on", ())]
        page = admin_client.post("/admin/jobs/workflow/add/", form(rows, edges))
        nodes_form, edges_form = (inline.formset for inline in page.context["inline_admin_formsets"])
        words = [*edges_form.non_form_errors(), *nodes_form.non_form_errors()]
        words += [word for each in nodes_form.forms for errors in each.errors.values() for word in errors]
        said = " ".join(words)
        if "duplicate" in said:
            said = f"{said} 'b'"  # Django's own words name the field, and stand at the row
        return said, {
            part for part in said.replace(":", " ").replace("→", " ").replace("'", " ").split() if len(part) == 1
        }

    doors: dict[str, Door] = {
        "builder": lambda nodes: told(lambda: workflows.validate(built(nodes))),
        "json": lambda nodes: told(lambda: workflows.validate(json.dumps(document(nodes)))),
        "stored": lambda nodes: told(lambda: workflows.define(document(nodes))),
        "started": lambda nodes: told(lambda: workflows.start(document(nodes))),
        "command": command,
        "admin": admin,
    }
    return doors[request.param]


@pytest.mark.parametrize(("nodes", "words", "names"), FAULTS.values(), ids=FAULTS)
def test_it_is_refused_with_the_names(door: Door, nodes: list[dict[str, Any]], words: str, names: set[str]) -> None:
    said, named = door(nodes)

    assert words in said
    assert names <= named
    assert workflows.list().items == []
    assert not StoredWorkflow.objects.exists()


def test_ten_thousand_and_one_nodes_are_one_too_many_where_no_setting_says_otherwise(settings: Any) -> None:
    settings.SCHEDULER = {name: value for name, value in settings.SCHEDULER.items() if name != "WORKFLOW_NODES"}
    nodes = [{"key": f"n{number}"} for number in range(10_001)]

    assert told(lambda: workflows.validate(document(nodes)))[0] == "10,001 nodes are too many: at most 10,000"
    assert len(workflows.validate(document(nodes[:-1])).nodes) == 10_000


def test_every_template_that_is_wrong_is_named() -> None:
    payload = {
        "one": {"$from": "a"},
        "two": [{"$form": "a.result"}],
        "three": {"deep": {"$from": "nobody.result"}},
        "four": {"$from": "b.result"},
        "five": {"$from": "a.resutl"},
    }
    flow = {"name": "w", "nodes": [{"key": "a", "type": "t"}, {"key": "b", "type": "t"},
                                   {"key": "c", "type": "t", "payload": payload, "depends_on": ["a"]}]}  # fmt: skip

    with pytest.raises(WorkflowInvalid) as refused:
        workflows.validate(flow, allow_unknown=True)

    assert [
        (problem.nodes, problem.message.removeprefix("Node 'c'").strip(": ")) for problem in refused.value.problems
    ] == [
        (("c",), "payload: 'a' does not say where the value comes from"),
        (("c",), "payload: {'$form': 'a.result'} is no template"),
        (("c", "nobody"), "takes 'nobody.result', and 'nobody' is no node"),
        (("c", "b"), "takes 'b.result', and 'b' is not among its parents"),
        (("c",), "payload: 'a.resutl': 'resutl' is no field of 'a'"),
    ]
