"""``workflows validate``: whether a file can run, without any server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NIGHTLY = {
    "name": "nightly",
    "nodes": [
        {"key": "extract", "type": "commands.greet"},
        {"key": "load", "type": "commands.greet", "payload": {"times": 2}, "depends_on": ["extract"]},
        {"key": "alarm", "type": "commands.greet", "on_failure": ["extract", "load"], "join": "any"},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(document: object) -> str:
        path = tmp_path / "nightly.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write


def test_one_that_can_run_is_drawn(cli, file):
    result = cli("workflows", "validate", "--file", file(NIGHTLY))

    assert result.code == 0
    assert result.out.splitlines()[-3:] == [
        "extract  commands.greet",
        "└─ load  commands.greet",
        "   └─ alarm  commands.greet · if extract or load fails",
    ]


def test_the_document_says_that_it_is_valid(cli, file):
    assert cli("workflows", "validate", "--file", file(NIGHTLY), "--json").json == {
        "valid": True,
        "name": "nightly",
        "nodes": 3,
        "edges": 3,
        "problems": [],
    }


def test_it_can_come_from_standard_input(cli):
    assert cli("workflows", "validate", "--file", "-", stdin=json.dumps(NIGHTLY).encode()).code == 0


def test_a_refused_one_exits_2_and_names_all_nodes_as_data(cli, file):
    nodes = [
        {"key": "a", "type": "commands.greet", "depends_on": ["c"]},
        {"key": "b", "type": "commands.greet", "depends_on": ["a"]},
        {"key": "c", "type": "commands.greet", "depends_on": ["b", "d"]},
    ]
    document = file({"name": "w", "nodes": nodes})

    result = cli("workflows", "validate", "--file", document, "--json")

    assert result.code == 2
    assert result.error["code"] == "workflow_invalid"
    unknown, cycle = result.json["problems"]
    assert unknown == {
        "nodes": ["c", "d"],
        "message": "Node 'c' waits for 'd', which is no node",
        "fix": "Known: a, b, c.",
    }
    assert sorted(cycle["nodes"]) == ["a", "b", "c"]
    people = cli("workflows", "validate", "--file", document)
    assert people.code == 2
    assert "Node 'c' waits for 'd', which is no node" in people.out
    assert people.err.startswith("Error: 2 problems: ")
    assert "(Known: a, b, c)" in people.err


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([{"key": "a", "type": "commands.gret"}], "Node 'a': No job type 'commands.gret' is registered"),
        (
            [{"key": "a", "type": "commands.greet", "payload": {"times": "x"}}],
            "argument 'times': expected int, got str",
        ),
        ([{"key": "a", "type": "commands.greet", "poool": "x"}], "Node 'a' has no field 'poool'. Did you mean 'pool'?"),
        ([{"key": "a", "type": "commands.greet"}] * 2, "2 nodes have the key 'a'"),
    ],
)
def test_what_is_wrong_is_one_paragraph(cli, file, nodes, message):
    result = cli("workflows", "validate", "--file", file({"name": "w", "nodes": nodes}))

    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_types_of_other_processes_may_be_allowed(cli, file):
    document = file({"name": "w", "nodes": [{"key": "a", "type": "not.here"}]})

    assert cli("workflows", "validate", "--file", document, "--allow-unknown").code == 0


def test_a_file_that_is_not_there_is_a_usage_error(cli):
    result = cli("workflows", "validate", "--file", "/no/such.json")

    assert result.code == 2
    assert "The workflow file '/no/such.json' cannot be read: No such file or directory." in result.err
