"""Workflows against the job types of this process: names, arguments, the limit of the settings."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import Workflow, job, workflows
from jobs.exceptions import WorkflowInvalid


@job("flows.extract")
def extract(day: str) -> dict[str, Any]:
    return {"rows": [day]}


@job("flows.load")
def load(rows: list[int], *, table: str = "t") -> None: ...


def flow_of(**payload: Any) -> Workflow:
    flow = Workflow("nightly")
    flow.add("load", load, payload, depends_on=flow.add("extract", extract, {"day": flow.payload("day")}))
    return flow


def problems(document: Any) -> list[tuple[tuple[str, ...], str]]:
    with pytest.raises(WorkflowInvalid) as refused:
        workflows.validate(document)
    return [(problem.nodes, problem.message) for problem in refused.value.problems]


def test_one_that_can_run_is_answered_whether_it_is_python_or_json() -> None:
    flow = flow_of(rows={"$from": "extract.result.rows"})

    definition = workflows.validate(flow)

    assert [(node.key, node.type) for node in definition.nodes] == [
        ("extract", "flows.extract"),
        ("load", "flows.load"),
    ]
    assert workflows.validate(flow.as_json()) == workflows.validate(flow.as_dict()) == definition
    assert workflows.validate(definition) == definition


def test_unknown_types_are_named_with_their_nodes_and_may_be_allowed() -> None:
    document = {"name": "w", "nodes": [{"key": "a", "type": "flows.extrakt"}, {"key": "b", "type": "flows.lod"}]}

    assert problems(document) == [
        (("a",), "Node 'a': No job type 'flows.extrakt' is registered in this process"),
        (("b",), "Node 'b': No job type 'flows.lod' is registered in this process"),
    ]
    assert len(workflows.validate(document, allow_unknown=True).nodes) == 2


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({}, "argument 'rows' is missing"),
        ({"rows": ["x"]}, "argument 'rows[0]': expected int, got str"),
        ({"rows": {"$from": "extract.result"}, "tabel": "x"}, "flows.load takes no argument 'tabel'"),
        ({"rows": {"$from": "extract.result"}, "table": 5}, "argument 'table': expected str, got int"),
    ],
)
def test_payloads_that_cannot_fit_are_refused_before_anything_runs(payload: dict[str, Any], message: str) -> None:
    ((nodes, said),) = problems(flow_of(**payload))

    assert nodes == ("load",)
    assert said.startswith("Node 'load': flows.load")
    assert message in said


def test_the_setting_limits_the_nodes(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "WORKFLOW_NODES": 2}
    flow = Workflow("w")
    flow.map("page", extract, [{"day": "x"}] * 3)

    assert problems(flow) == [((), "3 nodes are too many: at most 2")]


async def test_the_twin_is_the_same() -> None:
    flow = flow_of(rows=[])

    assert await workflows.avalidate(flow) == workflows.validate(flow)
