"""The published JSON Schema: what an independent validator says by it of examples, and of what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import msgspec
import pytest

from jobs.core.workflow import Workflow, read, schema
from jobs.exceptions import WorkflowInvalid
from samples.digest import weather_digest

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "docs" / "reference" / "workflow.schema.json").read_text())


def examples_of_the_guides() -> Iterator[Any]:
    """Whole workflows, and nodes that stand in the text, which are made one of their own."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for found in re.findall(r"```json\n(\{.*?\})\n```|`(\{\"key\": [^`]+\})`", text, re.DOTALL):
            document = json.loads(found[0] or found[1])
            if "nodes" in document or "key" in document:
                whole = document if "nodes" in document else {"name": "one", "nodes": [document]}
                yield pytest.param(whole, id=f"{page.name}: {whole['nodes'][0]['key']}")


def every_kind_of_node() -> Workflow:
    flow = Workflow("kinds", timeout=3600)
    rows = flow.add("rows", "list", {"day": flow.payload("day")}, priority=5, tags=["night"], meta={"team": "a"})
    each = flow.map("row", "load", rows.result(), {"n": flow.item("n"), "i": flow.index()}, depends_on=rows)
    inner = Workflow("inner")
    inner.add("only", "t", backoff={"kind": "fixed", "seconds": 3}, timeout=None, durability="disk")
    flow.sub("whole", inner, {"x": 1}, depends_on=each)
    flow.sub("stored", "nightly", depends_on=each)
    flow.signal("paid", timeout=60, on_timeout="continue")
    flow.approval("fit", "Fit?", permission="shop.ship", depends_on=rows)
    flow.add("most", "t", depends_on=["row", "whole", "stored"], join=2, delay=1.5, concurrency_key="a", rate_key="b")
    flow.add("clean", "tidy", on_complete="most", on_failure="fit", join="any", always=True)
    return flow


def complaints(document: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(PUBLISHED).iter_errors(document)]


def test_what_is_published_is_what_the_code_says_and_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    assert json.loads(json.dumps(schema())) == PUBLISHED


@pytest.mark.parametrize("document", [*examples_of_the_guides()])
def test_an_example_of_the_documentation_is_valid(document: dict[str, Any]) -> None:
    assert complaints(document) == []


@pytest.mark.parametrize("flow", [every_kind_of_node(), weather_digest(Random(1))], ids=lambda flow: flow.name)
def test_what_the_builder_writes_is_valid(flow: Workflow) -> None:
    assert complaints(json.loads(flow.as_json())) == []
    assert read(flow.as_json()) == flow.definition()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "w", "nodes": []}, "non-empty"),
        ({"nodes": [{"key": "a", "type": "t"}]}, "'name' is a required property"),
        ({"name": "w", "nodes": [{"type": "t"}]}, "'key' is a required property"),
        ({"name": "w", "nodes": [{"key": "a b", "type": "t"}]}, "does not match"),
        ({"name": "w", "nodes": [{"key": "a", "tpye": "t"}]}, "'tpye' was unexpected"),
        ({"name": "w", "nodes": [{"key": "a", "type": "t", "join": 0}]}, "0 is not valid"),
        ({"name": "w", "nodes": [{"key": "a", "type": "t", "depends_on": "b"}]}, "'b' is not of type 'array'"),
        ({"name": "w", "nodes": [{"key": "a", "type": "t", "priority": 101}]}, "101 is not valid"),
        ({"name": "w", "nodes": [{"key": "a", "type": "t"}], "timeout": 0}, "0 is not valid"),
    ],
)
def test_what_it_refuses_is_refused_here_too(document: dict[str, Any], words: str) -> None:
    (complaint,) = complaints(document)

    assert words in complaint
    with pytest.raises(WorkflowInvalid):
        read(document)


def test_it_knows_every_field_and_no_other() -> None:
    parts = PUBLISHED["$defs"]

    assert parts["Node"]["additionalProperties"] is parts["Definition"]["additionalProperties"] is False
    assert set(parts["Node"]["properties"]) == {
        field.name for field in msgspec.structs.fields(every_kind_of_node().definition().nodes[0])
    }
