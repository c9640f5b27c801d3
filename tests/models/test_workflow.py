"""The rows of a workflow: what they say together, and the versions that come of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError

from jobs.core.workflow import Definition, read
from jobs.exceptions import WorkflowInvalid
from jobs.models import Workflow, WorkflowEdge, WorkflowNode, WorkflowVersion

pytestmark = pytest.mark.django_db

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "nodes": [
        {"key": "extract", "type": "report.extract", "payload": {"day": {"$from": "run.payload.day"}}},
        {
            "key": "load",
            "type": "report.load",
            "depends_on": ["extract"],
            "pool": "background",
            "max_retries": 0,
            "delay": 60.0,
            "tags": ["night"],
            "backoff": {"kind": "fixed", "seconds": 2.0},
        },
        {"key": "slow", "type": "report.load", "depends_on": ["extract"], "timeout": None},
        {"key": "alarm", "type": "notify", "on_failure": ["extract", "load", "slow"], "join": 2},
        {"key": "clean", "type": "tidy", "on_complete": ["load"], "always": True},
    ],
}


def stored(document: dict[str, Any] = NIGHTLY) -> Workflow:
    definition = read(document)
    row = Workflow.objects.create(name=definition.name)
    row.replace_graph(definition)
    return row


def test_the_rows_say_what_the_json_said() -> None:
    row = stored()

    assert row.definition() == read(NIGHTLY)
    assert row.nodes.get(key="load").pool == "background"
    assert row.edges.count() == 6


def test_nodes_of_every_kind_are_rows() -> None:
    document = {
        "name": "w",
        "timeout": 3600.0,
        "nodes": [
            {"key": "ask", "approval": "Ship it?"},
            {"key": "wait", "signal": "ready", "depends_on": ["ask"]},
            {"key": "pages", "type": "t", "each": [1, 2], "payload": {"$from": "each.item"}, "depends_on": ["wait"]},
            {"key": "sub", "workflow": {"name": "s", "nodes": [{"key": "a", "type": "t"}]}, "depends_on": ["pages"]},
        ],
    }

    row = stored(document)
    row.timeout = 3600.0

    assert row.definition() == read(document)


def test_both_words_for_a_success_are_one_edge() -> None:
    nodes = [{"key": "a", "type": "t"}, {"key": "b", "type": "t", "on_success": ["a"]}]
    row = stored({"name": "w", "nodes": nodes})

    first = row.publish()

    assert row.definition().nodes[1].depends_on == ("a",)
    assert row.says(read({"name": "w", "nodes": nodes}))
    assert first == row.publish()


def test_a_version_is_written_when_the_graph_is_another_one_and_never_changed() -> None:
    row = stored()
    first = row.publish(by="ana")
    row.nodes.filter(key="load").update(payload={"table": "t"})  # whatever writes the rows

    second = row.publish(by="ben")

    assert [first.number, second.number, row.publish().number] == [1, 2, 2]
    assert (row.version, row.changed_by) == (2, "ben")
    versions = WorkflowVersion.objects.filter(name="nightly")
    assert [(version.number, version.by, version.nodes) for version in versions] == [(2, "ben", 5), (1, "ana", 5)]
    assert versions[1].definition() == read(NIGHTLY)


def test_a_workflow_that_is_made_again_goes_on_counting() -> None:
    row = stored()
    row.publish()
    row.delete()

    again = stored({"name": "nightly", "nodes": [{"key": "a", "type": "t"}]}).publish()

    assert again.number == 2
    assert WorkflowVersion.objects.get(number=1).workflow is None


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        (("laod", "extract"), "'laod' waits for 'extract' and is no node"),
        (("load", "extrct"), "Node 'load' waits for 'extrct', which is no node"),
        (("extract", "clean"), "nodes wait for each other"),
        (("clean", "clean"), "Node 'clean' waits for itself"),
    ],
)
def test_rows_that_do_not_hold_together_are_no_version(edge: tuple[str, str], words: str) -> None:
    row = stored()
    child, parent = edge
    WorkflowEdge.objects.create(workflow=row, child=child, parent=parent)

    with pytest.raises(WorkflowInvalid, match=words):
        row.publish()

    assert not WorkflowVersion.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"key": "a.b"}, "key"),
        ({"key": "a\n"}, "key"),
        ({"more": {"depends_on": ["x"]}}, "more"),
        ({"more": {"pool": "slow"}, "pool": "fast"}, "more"),
        ({"more": [1]}, "more"),
        ({"priority": 101}, "priority"),
    ],
)
def test_a_node_that_cannot_be_one_is_refused_at_its_field(fields: dict[str, Any], field: str) -> None:
    row = stored()

    with pytest.raises(ValidationError) as refused:
        WorkflowNode(workflow=row, **{"key": "new", "job_type": "t", **fields}).full_clean()

    assert field in refused.value.message_dict


def test_it_moves_to_another_database_as_a_fixture() -> None:
    stored().publish()
    rows = [*Workflow.objects.all(), *WorkflowNode.objects.all(), *WorkflowEdge.objects.all()]
    fixture = serializers.serialize("json", rows)
    Workflow.objects.all().delete()

    for row in serializers.deserialize("json", fixture):
        row.save()

    again: Definition = Workflow.objects.get(name="nightly").definition()
    assert again == read(NIGHTLY)
