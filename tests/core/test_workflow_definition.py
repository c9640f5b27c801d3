"""What is accepted as a workflow, what is refused and how that is said, and the three ways of writing one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from jobs.core.workflow import MOST_NODES, Workflow, read, spec_options
from jobs.exceptions import WorkflowInvalid

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "nodes": [
        {"key": "extract", "type": "report.extract", "payload": {"day": "2026-01-01"}},
        {"key": "load", "type": "report.load", "depends_on": ["extract"], "pool": "background", "max_retries": 5},
        {"key": "ok", "type": "notify", "on_success": ["load"]},
        {"key": "alarm", "type": "notify", "on_failure": ["extract", "load"], "join": "any"},
        {"key": "clean", "type": "tidy", "on_complete": ["load"]},
    ],
}


def of(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"name": "w", "nodes": [{"type": "t", **node} for node in nodes]}


def problems(document: Any) -> list[tuple[tuple[str, ...], str, str]]:
    with pytest.raises(WorkflowInvalid) as refused:
        read(document)
    assert str(refused.value)
    return [tuple(problem) for problem in refused.value.problems]


def test_the_json_of_the_contract_is_read_and_written_as_it_stands() -> None:
    assert read(json.dumps(NIGHTLY)).as_dict() == read(NIGHTLY).as_dict() == NIGHTLY


def test_python_writes_the_same() -> None:
    flow = Workflow("nightly")
    extract = flow.add("extract", "report.extract", {"day": "2026-01-01"})
    load = flow.add("load", "report.load", depends_on=extract, pool="background", max_retries=5)
    flow.add("ok", "notify", on_success=load)
    flow.add("alarm", "notify", on_failure=[extract, "load"], join="any")
    flow.add("clean", "tidy", on_complete="load")

    assert flow.definition() == read(NIGHTLY)
    assert json.loads(flow.as_json()) == NIGHTLY
    assert Workflow.from_json(flow.as_json()).definition() == flow.definition()


class TestRefusals:
    @pytest.mark.parametrize(
        ("document", "expected"),
        [
            ("{", "This is no JSON"),
            ("[]", "A workflow must be an object, got []"),
            ({"name": "w"}, "The workflow has no nodes"),
            ({"name": "w", "nodes": []}, "The workflow has no nodes"),
            ({"nodes": [{"key": "a", "type": "t"}]}, "The workflow's name: expected text, got None"),
            ({**NIGHTLY, "nods": 1}, "The workflow has no field 'nods'"),
            ({"name": "w", "nodes": [5]}, "A node must be an object, got 5"),
        ],
    )
    def test_of_the_whole(self, document: Any, expected: str) -> None:
        (problem,) = problems(document)

        assert problem[1].startswith(expected)
        assert problem[0] == ()

    @pytest.mark.parametrize(
        ("node", "message", "fix"),
        [
            ({"key": "a", "prioritie": 5}, "Node 'a' has no field 'prioritie'", "Did you mean 'priority'?"),
            ({"key": "a", "type": 5}, "Node 'a': type: expected str, got int", ""),
            ({"key": "a", "depends_on": "b"}, "Node 'a': depends_on: expected array, got str", ""),
            ({"key": "a", "priority": 101}, "Node 'a': priority: expected int <= 100", ""),
            ({"key": "a", "timeout": 0}, "Node 'a': timeout: 0 would end every attempt at once", "Write timeout=None"),
            ({"key": "a", "pool": "no pool"}, "Node 'a': pool: 'no pool' is not a pool name", "Use up to 64"),
            ({"key": "a", "tags": ["x\n"]}, "Node 'a': a tag in tags", "Leave out control"),
            (
                {"key": "a", "backoff": {"kind": "fixed", "base": 1}},
                "Node 'a': backoff: 'fixed' has no 'base'",
                "Known:",
            ),
            ({"key": "a", "join": "some"}, "Node 'a': join: invalid enum value 'some'", ""),
            ({"key": "a.b"}, "Node 'a.b': key: expected str matching regex", ""),
            ({"key": "run"}, "No node can be called 'run'", "Templates call the run so"),
            ({"key": "a", "always": True}, "Node 'a' is marked always", "Name what it cleans up after"),
            ({"key": "a", "join": 1}, "Node 'a' wants 1 of its 0 parents", 'Leave "join" out'),
        ],
    )
    def test_of_one_node(self, node: dict[str, Any], message: str, fix: str) -> None:
        (problem,) = problems(of(node))

        assert problem[0] == (node["key"],)
        assert problem[1].startswith(message)
        assert problem[2].startswith(fix)

    def test_of_a_missing_field(self) -> None:
        assert problems({"name": "w", "nodes": [{"key": "a"}]}) == [
            (
                ("a",),
                "Node 'a' does not say what it runs",
                'Write one of "type", "workflow", "signal" and "approval".',
            )
        ]

    def test_of_duplicate_keys(self) -> None:
        assert problems(of({"key": "a"}, {"key": "b"}, {"key": "a"})) == [
            (("a",), "2 nodes have the key 'a'", "Give each a key of its own.")
        ]

    def test_of_unknown_parents(self) -> None:
        assert problems(of({"key": "extract"}, {"key": "load", "depends_on": ["extarct"]})) == [
            (("load", "extarct"), "Node 'load' waits for 'extarct', which is no node", "Did you mean 'extract'?")
        ]

    def test_of_a_node_that_waits_for_itself(self) -> None:
        assert problems(of({"key": "a", "on_failure": ["a"]})) == [
            (("a",), "Node 'a' waits for itself", "Take that edge away.")
        ]

    def test_of_a_parent_that_is_named_twice(self) -> None:
        (problem,) = problems(of({"key": "a"}, {"key": "b", "on_success": ["a"], "on_failure": ["a"]}))

        assert problem[1:] == (
            "Node 'b' names its parent 'a' 2 times",
            "Keep one edge; on_complete waits for any end of 'a'.",
        )

    def test_of_a_cycle_of_three_with_its_nodes_in_order(self) -> None:
        document = of(
            {"key": "before"},
            {"key": "a", "depends_on": ["c", "before"]},
            {"key": "b", "on_failure": ["a"]},
            {"key": "c", "on_complete": ["b"]},
            {"key": "behind", "depends_on": ["c"]},
        )

        (problem,) = problems(document)

        assert set(problem[0]) == {"a", "b", "c"}
        turns = ("a → b → c → a", "b → c → a → b", "c → a → b → c")
        assert problem[1] in [f"3 nodes wait for each other: {turn}" for turn in turns]

    def test_of_all_cycles_and_all_else_at_once(self) -> None:
        document = of(
            {"key": "a", "depends_on": ["b"]},
            {"key": "b", "depends_on": ["a"]},
            {"key": "c", "depends_on": ["d"]},
            {"key": "d", "depends_on": ["c"]},
            {"key": "e", "depends_on": ["e", "nobody"]},
        )

        assert [problem[0] for problem in problems(document)][:2] == [("e",), ("e", "nobody")]
        assert sorted(sorted(problem[0]) for problem in problems(document)[2:]) == [["a", "b"], ["c", "d"]]

    def test_of_a_cycle_of_thousands(self) -> None:
        nodes = [{"key": f"n{number}", "depends_on": [f"n{(number + 1) % 5_000}"]} for number in range(5_000)]

        (problem,) = problems(of(*nodes))

        assert len(problem[0]) == 5_000
        assert len(problem[1]) < 500

    def test_of_more_nodes_than_are_allowed(self) -> None:
        nodes = [{"key": f"n{number}", "type": "t"} for number in range(MOST_NODES + 1)]

        (problem,) = problems({"name": "w", "nodes": nodes})
        assert problem[1] == "10,001 nodes are too many: at most 10,000"
        assert len(read({"name": "w", "nodes": nodes[:-1]}).nodes) == MOST_NODES
        with pytest.raises(WorkflowInvalid, match="3 nodes are too many: at most 2"):
            read({"name": "w", "nodes": nodes[:3]}, most_nodes=2)


class TestTemplatesOfADefinition:
    @pytest.mark.parametrize(
        ("payload", "message", "fix"),
        [
            ({"x": {"$from": "extract"}}, "'extract' does not say where", 'Write a node (or "run")'),
            ({"x": {"$from": 5}}, "$from: expected text, got 5", "Write"),
            (
                {"x": [{"y": {"$from": "extract.resutl"}}]},
                "'extract.resutl': 'resutl' is no field",
                "Did you mean 'result'?",
            ),
            ({"x": {"$form": "extract.result"}}, "{'$form': 'extract.result'} is no template", "Write"),
            ({"x": {"$from": "run.result"}}, "'run.result': 'result' is no field of 'run'", "Known: payload."),
        ],
    )
    def test_that_cannot_be_read_are_refused(self, payload: Any, message: str, fix: str) -> None:
        (problem,) = problems(of({"key": "extract"}, {"key": "load", "depends_on": ["extract"], "payload": payload}))

        assert problem[0] == ("load",)
        assert problem[1].startswith(f"Node 'load': payload: {message}")
        assert problem[2].startswith(fix)

    @pytest.mark.parametrize(
        ("edge", "reference", "message"),
        [
            ("depends_on", "extarct.result", "Node 'load' takes 'extarct.result', and 'extarct' is no node"),
            ("depends_on", "other.result", "Node 'load' takes 'other.result', and 'other' is not among its parents"),
            (
                "on_failure",
                "extract.result",
                "Node 'load' takes 'extract.result', and runs after a failure of 'extract'",
            ),
            ("depends_on", "extract.error", "Node 'load' takes 'extract.error', and runs after a success of 'extract'"),
        ],
    )
    def test_that_can_have_no_value_are_refused(self, edge: str, reference: str, message: str) -> None:
        load = {"key": "load", edge: ["extract"], "payload": {"x": {"$from": reference}}}

        (problem,) = problems(of({"key": "extract"}, {"key": "other"}, load))

        assert problem[1].startswith(message)

    def test_that_have_one_are_kept_as_they_are(self) -> None:
        payload = {
            "rows": {"$from": "extract.result.rows.0", "default": []},
            "why": {"$from": "check.error.message"},
            "how": [{"$from": "check.state"}],
            "day": {"$from": "run.payload.day"},
            "data": {"$literal": {"$from": "a bank"}},
        }
        load = {"key": "load", "depends_on": ["extract"], "on_complete": ["check"], "payload": payload}

        assert read(of({"key": "extract"}, {"key": "check"}, load)).nodes[2].payload == payload


class TestOptions:
    def test_all_of_a_node_become_those_of_its_job(self) -> None:
        node = {
            "key": "a",
            "type": "t",
            "pool": "background",
            "priority": -5,
            "max_retries": 2,
            "timeout": None,
            "backoff": {"kind": "linear", "step": 2, "cap": 10},
            "delay": 1.5,
            "tags": ["x"],
            "meta": {"customer": "42"},
            "concurrency_key": "c",
            "rate_key": "r",
            "durability": "disk",
        }

        checked = spec_options(read({"name": "w", "nodes": [node]}).nodes[0])

        assert checked == {
            **{name: node[name] for name in ("pool", "priority", "max_retries", "timeout", "meta", "durability")},
            "backoff": ("linear", 2.0, 10.0, 0.2),
            "delay": 1_500,
            "tags": ("x",),
            "concurrency_key": "c",
            "rate_key": "r",
        }

    def test_what_is_left_out_is_the_job_types(self) -> None:
        assert spec_options(read(of({"key": "a"})).nodes[0]) == {}


class TestKinds:
    def test_python_writes_what_is_no_job(self) -> None:
        inner = Workflow("inner")
        inner.add("a", "t", {"n": inner.payload("n")})
        flow = Workflow("w", timeout=timedelta(hours=1))
        rows = flow.add("rows", "t")
        flow.map("page", "p", rows.result("urls"), {"url": flow.item("url"), "n": flow.index()}, depends_on=rows)
        flow.sub("shop", inner, {"n": flow.item()}, each=[1, 2])
        flow.sub("stored", "nightly")
        flow.signal("paid", timeout=60, on_timeout="continue")
        flow.approval("go", "Deploy?", {"rows": rows.result()}, depends_on=rows, permission="shop.deploy")

        document = flow.definition().as_dict()

        assert document["timeout"] == 3600.0
        assert document["nodes"][1:] == [
            {
                "key": "page",
                "type": "p",
                "each": {"$from": "rows.result.urls"},
                "payload": {"url": {"$from": "each.item.url"}, "n": {"$from": "each.index"}},
                "depends_on": ["rows"],
            },
            {
                "key": "shop",
                "workflow": inner.as_dict(),
                "each": [1, 2],
                "payload": {"n": {"$from": "each.item"}},
            },
            {"key": "stored", "workflow": "nightly"},
            {"key": "paid", "signal": "paid", "timeout": 60.0, "on_timeout": "continue"},
            {
                "key": "go",
                "approval": "Deploy?",
                "payload": {"rows": {"$from": "rows.result"}},
                "depends_on": ["rows"],
                "permission": "shop.deploy",
            },
        ]
        assert read(document).as_dict() == Workflow.from_json(document).as_dict() == document
        assert [node.kind for node in read(document).nodes] == ["job", "each", "each", "workflow", "signal", "approval"]

    @pytest.mark.parametrize(
        ("node", "nodes", "message"),
        [
            ({"key": "a", "type": "t", "signal": "s"}, ("a",), "Node 'a' names both type and signal"),
            ({"key": "a", "signal": "s", "pool": "p"}, ("a",), "Node 'a' has pool, which does not go with signal"),
            ({"key": "a", "signal": "s", "each": [1]}, ("a",), "Node 'a' has each, which does not go with signal"),
            ({"key": "a", "type": "t", "permission": "x.y"}, ("a",), "Node 'a' has permission, which does not go with"),
            ({"key": "a", "workflow": "w", "pool": "p"}, ("a",), "Node 'a' has pool, which does not go with workflow"),
            ({"key": "a", "signal": "s", "on_timeout": "continue"}, ("a",), "Node 'a' has on_timeout and no timeout"),
            ({"key": "a", "approval": "?", "permission": "deploy"}, ("a",), "Node 'a': 'deploy' is no permission"),
            ({"key": "each", "type": "t"}, ("each",), "No node can be called 'each'"),
            (
                {"key": "a", "type": "t", "payload": {"x": {"$from": "each.item"}}},
                ("a",),
                "Node 'a' takes 'each.item', and is not run for each of a list",
            ),
            (
                {"key": "a", "type": "t", "each": {"$from": "each.item"}},
                ("a",),
                "Node 'a' takes 'each.item', and is not run for each of a list",
            ),
            (
                {"key": "a", "workflow": {"name": "i", "nodes": [{"key": "b", "type": "t", "on_failure": ["c"]}]}},
                ("a:b", "a:c"),
                "In the workflow of node 'a': Node 'b' waits for 'c', which is no node",
            ),
        ],
    )
    def test_what_does_not_go_together_is_refused(
        self, node: dict[str, Any], nodes: tuple[str, ...], message: str
    ) -> None:
        (problem,) = problems({"name": "w", "nodes": [node]})

        assert problem[0] == nodes
        assert problem[1].startswith(message)

    def test_a_key_that_a_member_of_a_group_would_have_is_refused(self) -> None:
        ((nodes, message, _),) = problems(of({"key": "page", "each": [1]}, {"key": "page:0"}))

        assert (nodes, message) == (("page:0", "page"), "Node 'page:0' is called like a member of 'page'")

    @pytest.mark.parametrize("timeout", [0, -1, True, "1h"])
    def test_a_time_limit_is_a_number_of_seconds(self, timeout: object) -> None:
        ((_, message, _),) = problems({**of({"key": "a"}), "timeout": timeout})

        assert message.startswith("The workflow's timeout: expected seconds above 0, got")

    def test_nodes_of_sub_workflows_count(self) -> None:
        inner = of(*({"key": f"n{number}"} for number in range(6_000)))
        document = {"name": "w", "nodes": [{"key": "a", "workflow": inner}, {"key": "b", "workflow": inner}]}

        assert problems(document) == [
            ((), "12,002 nodes are too many: at most 10,000", "Raise SCHEDULER['WORKFLOW_NODES'].")
        ]
