"""Workflows written in Python: chains, groups, chords, maps, and how they are drawn as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from jobs.core.retry import Exponential, Fixed
from jobs.core.workflow import Graph, Workflow, draw, read
from jobs.exceptions import WorkflowInvalid
from tests.core.test_workflow_definition import NIGHTLY


def edges(flow: Workflow) -> dict[str, list[str]]:
    return {node.key: list(node.depends_on) for node in flow.definition().nodes}


def test_a_chain_runs_one_after_the_other() -> None:
    flow = Workflow("w")
    flow.chain(*(flow.add(key, "t") for key in "abc"))

    assert edges(flow) == {"a": [], "b": ["a"], "c": ["b"]}


def test_a_group_in_a_chain_runs_beside_each_other_and_is_waited_for() -> None:
    flow = Workflow("w")
    for key in "abcdef":
        flow.add(key, "t")
    flow.chain("a", flow.group(flow.chain("b", "c"), "d"), ["e", "f"])

    assert edges(flow) == {"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["c", "d"], "f": ["c", "d"]}


def test_a_chord_is_a_group_and_what_follows_it() -> None:
    flow = Workflow("w")
    flow.chord([flow.add("a", "t"), flow.add("b", "t")], flow.add("body", "t"))

    assert edges(flow)["body"] == ["a", "b"]


def test_map_makes_a_node_of_each_payload() -> None:
    flow = Workflow("w")
    pages = flow.map("page", "t", [{"number": number} for number in range(3)], pool="background")
    flow.chain(pages, flow.add("merge", "t"))

    nodes = flow.definition().nodes
    assert [(node.key, node.payload, node.pool) for node in nodes[:3]] == [
        (f"page:{number}", {"number": number}, "background") for number in range(3)
    ]
    assert edges(flow)["merge"] == ["page:0", "page:1", "page:2"]


def test_values_of_others_are_referred_to_by_their_parts() -> None:
    flow = Workflow("w")
    extract = flow.add("extract", "t", {"day": flow.payload("day")})
    flow.add("load", "t", {"rows": extract.result("rows", 0), "how": extract.state()}, depends_on=extract)
    flow.add("alarm", "t", {"why": extract.error("message")}, on_failure=extract)

    payloads = {node.key: node.payload for node in flow.definition().nodes}
    assert payloads == {
        "extract": {"day": {"$from": "run.payload.day"}},
        "load": {"rows": {"$from": "extract.result.rows.0"}, "how": {"$from": "extract.state"}},
        "alarm": {"why": {"$from": "extract.error.message"}},
    }


def test_values_of_python_become_those_of_json() -> None:
    flow = Workflow("w")
    flow.add("a", "t", {"at": datetime(2026, 1, 1, tzinfo=UTC)}, timeout=timedelta(minutes=1), backoff=Fixed(5))
    flow.add("b", "t", backoff=Exponential(base=0.5, cap=10))

    a, b = json.loads(flow.as_json())["nodes"]
    assert a["payload"] == {"at": "2026-01-01T00:00:00Z"}
    assert a["timeout"] == 60.0
    assert a["backoff"] == {"kind": "fixed", "seconds": 5.0, "jitter": 0.0}
    assert b["backoff"] == {"kind": "exponential", "base": 0.5, "cap": 10.0, "jitter": 0.2}


def test_a_mistake_is_refused_by_the_line_that_makes_it() -> None:
    flow = Workflow("w")
    flow.add("a", "t")

    with pytest.raises(WorkflowInvalid, match="There is a node 'a' already"):
        flow.add("a", "t")
    with pytest.raises(WorkflowInvalid, match="Node 'b' has no field 'poool'"):
        flow.add("b", "t", poool="x")
    with pytest.raises(WorkflowInvalid, match="Node 'b': payload: "):
        flow.add("b", "t", {"x": object()})
    with pytest.raises(WorkflowInvalid, match="A chain names 'nobody'"):
        flow.chain("a", "nobody")
    with pytest.raises(WorkflowInvalid, match="map 'page' has no payloads"):
        flow.map("page", "t", [])
    assert [node.key for node in flow.definition().nodes] == ["a"]


def test_what_only_the_whole_can_tell_is_refused_at_the_end() -> None:
    flow = Workflow("w")
    flow.add("a", "t", depends_on="later")

    with pytest.raises(WorkflowInvalid, match="waits for 'later', which is no node"):
        flow.definition()
    flow.add("later", "t")
    assert len(flow.definition().nodes) == 2


def test_nodes_stand_below_their_last_parent() -> None:
    assert list(draw(Graph(read(NIGHTLY).nodes))) == [
        "extract  report.extract",
        "└─ load  report.load",
        "   ├─ ok  notify",
        "   ├─ alarm  notify · if extract or load fails",
        "   └─ clean  tidy · when load ends",
    ]


def test_what_is_alike_is_one_line_and_joins_are_in_words() -> None:
    flow = Workflow("w")
    pages = flow.map("page", "t", [{}] * 1_000)
    flow.chain(flow.add("first", "t"), pages)
    flow.add("most", "u", depends_on=pages, join=900)
    flow.add("both", "u", on_failure=["page:1", "page:2"], on_complete=["first"])

    assert list(draw(Graph(flow.definition().nodes))) == [
        "first  t",
        "└─ page:0  t  and 999 more to page:999",
        "   ├─ both  u · if page:1 and page:2 fail and when first ends",
        "   └─ most  u · at least 900: after page:0, page:1, page:2, page:3 or 996 more",
    ]


def test_a_chain_of_thousands_is_drawn() -> None:
    flow = Workflow("w")
    flow.chain(*(flow.add(f"n{number}", "t") for number in range(3_000)))

    assert len(list(draw(Graph(flow.definition().nodes)))) == 3_000
