"""Nodes that open into others, nodes that wait for somebody outside, and runs that are retried: against an oracle."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.core.states import JobState
from jobs.core.workflow import FAILURES, Ended, Node, Run, RunState, Stood, TemplateError, Workflow, members
from jobs.core.workflow.graph import Graph
from tests.core.test_workflow_run import ends, holds, node, random_nodes, started, verdict, wanted_of

SUCCEEDED, DEAD, CANCELLED, SKIPPED = JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.SKIPPED


def opened_by(node: Node, payload: Any = None, **results: Any) -> list[Node]:
    return list(members(node, payload, {key: Ended("succeeded", result) for key, result in results.items()}))


class TestMembers:
    def test_a_list_opens_into_one_node_for_each_item(self) -> None:
        flow = Workflow("w")
        flow.add("list", "t")
        flow.map("page", "p", {"$from": "list.result.urls"}, {"url": flow.item(), "n": flow.index()}, depends_on="list")
        page = flow.definition().nodes[1]

        opened = opened_by(page, list={"urls": ["a", {"$from": "odd"}]})

        assert [each.key for each in opened] == ["page:0", "page:1"]
        assert opened[0] == Node(key="page:0", type="p", payload={"url": "a", "n": 0})
        assert opened[1].payload == {"$literal": {"url": {"$from": "odd"}, "n": 1}}  # what a job left is no template

    def test_items_may_be_the_payloads(self) -> None:
        flow = Workflow("w")
        rows = flow.add("rows", "t")
        flow.map("page", "p", rows.result(), depends_on=rows)

        assert [each.payload for each in opened_by(flow.definition().nodes[1], rows=[{"x": 1}, {"x": 2}])] == [
            {"x": 1},
            {"x": 2},
        ]

    @pytest.mark.parametrize(
        ("result", "message"),
        [({"rows": 5}, "to be run for each of 5"), ({}, "without 'rows'"), ({"rows": [1]}, "The payload is 1")],
    )
    def test_what_cannot_be_opened_says_why(self, result: Any, message: str) -> None:
        flow = Workflow("w")
        flow.map("page", "p", flow.add("a", "t").result("rows"), depends_on="a")

        with pytest.raises(TemplateError, match=message):
            opened_by(flow.definition().nodes[1], a=result)

    def test_a_sub_workflow_opens_into_its_nodes_which_see_its_payload_as_the_runs(self) -> None:
        inner = Workflow("inner")
        first = inner.add("a", "t", {"day": inner.payload("day"), "all": inner.payload()})
        inner.add("b", "t", {"rows": first.result("rows")}, on_complete=first, join="any")
        flow = Workflow("w")
        flow.sub("sub", inner, {"day": flow.payload("when")})

        a, b = opened_by(flow.definition().nodes[0], {"when": "today"})

        assert (a.key, a.payload) == ("sub:a", {"day": "today", "all": {"day": "today"}})
        assert (b.key, b.on_complete, b.join) == ("sub:b", ("sub:a",), "any")
        assert b.payload == {"rows": {"$from": "sub:a.result.rows"}}

    def test_a_list_may_open_into_sub_workflows(self) -> None:
        inner = Workflow("inner")
        inner.add("a", "t", {"n": inner.payload("n")})
        flow = Workflow("w")
        flow.sub("shop", inner, {"n": flow.item()}, each=[7, 8])

        shops = opened_by(flow.definition().nodes[0])

        assert [each.key for each in shops] == ["shop:0", "shop:1"]
        assert [each.payload for shop in shops for each in opened_by(shop)] == [{"n": 7}, {"n": 8}]


def group(key: str = "g", **fields: Any) -> Node:
    return msgspec.structs.replace(node(key, **fields), each=[])


class TestGroups:
    def test_a_group_ends_when_all_of_its_members_have(self) -> None:
        run = started(group(), node("after", depends_on="g"))

        assert run.open("g", [node("g:0"), node("g:1")]).released == ("g:0", "g:1")
        assert run.note("g:0", SUCCEEDED) == run.note("g:0", SUCCEEDED)
        decision = run.note("g:1", SUCCEEDED)

        assert decision.closed == ("g",)
        assert decision.released == ("after",)

    def test_an_empty_group_has_succeeded(self) -> None:
        run = started(group(), node("after", depends_on="g"))

        assert run.open("g", []).released == ("after",)

    @pytest.mark.parametrize(("end", "expected"), [(DEAD, DEAD), (CANCELLED, CANCELLED)])
    def test_it_ends_as_a_run_of_its_members_would(self, end: JobState, expected: JobState) -> None:
        run = started(group(), node("after", depends_on="g"), node("alarm", on_failure="g"))
        run.open("g", [node("g:0"), node("g:1")])

        decision = ends(run, **{"g:1": end, "g:0": SUCCEEDED})

        assert run.ended["g"] is expected
        assert (decision.released, decision.skipped) == (("alarm",), ("after",))

    def test_a_failure_that_is_covered_inside_is_none_outside(self) -> None:
        run = started(group())
        run.open("g", [node("g:a"), node("g:b", on_failure="g:a")])

        ends(run, **{"g:a": DEAD, "g:b": SUCCEEDED})

        assert run.state is RunState.SUCCEEDED

    def test_nodes_that_are_added_to_a_group_are_waited_for(self) -> None:
        run = started(group(), node("after", depends_on="g"))
        run.open("g", [node("g:0")])

        run.add([node("more", depends_on="g:0")], "g")

        assert run.note("g:0", SUCCEEDED).released == ("more",)
        assert run.note("more", SUCCEEDED).released == ("after",)

    def test_a_member_that_lives_again_opens_the_group_again(self) -> None:
        run = started(group(), node("after", depends_on="g"))
        run.open("g", [node("g:0")])
        run.note("g:0", DEAD)

        assert run.note("g:0", JobState.READY).reopened == ("g", "after")
        assert run.note("g:0", SUCCEEDED).released == ("after",)

    def test_a_group_cannot_be_told_how_it_ended(self) -> None:
        run = started(group())
        run.open("g", [node("g:0")])

        with pytest.raises(ValueError, match="ends when its members have"):
            run.note("g", SUCCEEDED)

    def test_one_that_cannot_be_opened_is_dead(self) -> None:
        run = started(group())

        assert run.note("g", DEAD).state is RunState.FAILED
        assert run.open("g", [node("g:0")]).released == ()  # somebody was late


class TestCancel:
    def test_nobody_waits_in_a_cancelled_run(self) -> None:
        run = started(Node(key="go", approval="Go?"), Node(key="paid", signal="paid"), group(), node("a"))
        run.open("g", [node("g:0"), node("g:1", depends_on="g:0")])

        assert run.cancel().cancelled == ("g:1", "go", "paid")
        assert ends(run, **{"g:0": CANCELLED, "a": SUCCEEDED}).closed == ()
        assert run.ended["g"] is CANCELLED
        assert run.state is RunState.CANCELLED

    def test_a_clean_up_may_be_a_group(self) -> None:
        run = started(node("a"), group("g", on_complete="a", always=True))
        run.cancel()

        assert run.note("a", CANCELLED).released == ("g",)
        assert run.open("g", [node("g:0")]).released == ("g:0",)
        assert run.note("g:0", SUCCEEDED).closed == ("g",)
        assert run.ended["g"] is SUCCEEDED


class TestRetry:
    def test_what_failed_runs_again_and_what_was_skipped_because_of_it_waits_again(self) -> None:
        run = started(node("a"), node("b", depends_on="a"), node("c", depends_on="b"), node("alarm", on_failure="b"))
        ends(run, a=SUCCEEDED, b=DEAD, alarm=SUCCEEDED)

        decision = run.retry()

        assert (decision.released, decision.reopened, decision.state) == (("b",), ("c",), RunState.RUNNING)
        assert run.note("b", SUCCEEDED).released == ("c",)
        assert run.note("c", SUCCEEDED).state is RunState.SUCCEEDED
        assert run.ended["alarm"] is SUCCEEDED  # it ran, and that stays

    def test_from_a_node_everything_after_it_is_as_if_it_had_never_run(self) -> None:
        run = started(node("a"), node("b", depends_on="a"), node("c", depends_on="b"), node("d", depends_on="a"))
        ends(run, a=SUCCEEDED, b=SUCCEEDED, c=SUCCEEDED, d=SUCCEEDED)

        decision = run.retry("b")

        assert (decision.released, decision.reopened) == (("b",), ("c",))
        assert run.note("b", DEAD).skipped == ("c",)
        assert run.state is RunState.FAILED

    def test_a_cancelled_run_goes_on(self) -> None:
        run = started(node("a"), node("b", depends_on="a"), node("c"))
        run.note("c", SUCCEEDED)
        run.cancel()
        run.note("a", CANCELLED)

        decision = run.retry()

        assert (decision.released, decision.reopened) == (("a",), ("b",))
        assert run.note("a", SUCCEEDED).released == ("b",)

    def test_a_group_opens_anew(self) -> None:
        run = started(node("a"), group("g", depends_on="a"), node("b", depends_on="g"))
        run.note("a", SUCCEEDED)
        run.open("g", [node("g:0"), node("g:1")])
        ends(run, **{"g:0": SUCCEEDED, "g:1": SUCCEEDED, "b": SUCCEEDED})

        run.retry("a")

        assert run.note("a", SUCCEEDED).released == ("g",)
        assert run.open("g", [node("g:0")]).released == ("g:0",)
        assert run.note("g:0", SUCCEEDED).released == ("b",)

    def test_one_member_of_a_group_runs_again_and_what_comes_after_the_group(self) -> None:
        run = started(group(), node("b", depends_on="g"))
        run.open("g", [node("g:0"), node("g:1")])
        ends(run, **{"g:0": SUCCEEDED, "g:1": SUCCEEDED, "b": SUCCEEDED})

        decision = run.retry("g:1")

        assert (decision.released, decision.reopened) == (("g:1",), ("b",))
        assert run.note("g:1", SUCCEEDED).released == ("b",)

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            (None, "no node has failed"),
            ("x", "there is no node 'x'"),
            ("b", "node 'b' still runs"),
            ("c", "node 'c' has not run yet"),
            ("a", "node 'b' comes after 'a' and still runs"),
            ("s", "node 's' was skipped: begin from a node that it waits for"),
        ],
    )
    def test_what_cannot_be_retried_says_why_and_nothing_changes(self, key: str | None, message: str) -> None:
        run = started(node("a"), node("b", depends_on="a"), node("c", depends_on="b"), node("s", on_failure="a"))
        run.note("a", SUCCEEDED)

        with pytest.raises(ValueError, match=message):
            run.retry(key)

        assert run.note("b", SUCCEEDED).released == ("c",)


# Whatever the graph --------------------------------------------------------------------------------------------------


class Wanted(msgspec.Struct):
    """A workflow with groups in it: for each group (by key) what it opens into."""

    nodes: list[Node]
    inside: dict[str, list[Node]]


def random_workflow(random: Random, count: int, scope: str = "", depth: int = 0) -> Wanted:
    nodes = random_nodes(random, count)
    inside: dict[str, list[Node]] = {}
    for position, each in enumerate(nodes):
        prefixed = {
            field: tuple(f"{scope}{key}" for key in getattr(each, field))
            for field in ("depends_on", "on_success", "on_failure", "on_complete")
        }
        nodes[position] = msgspec.structs.replace(each, key=f"{scope}{each.key}", **prefixed)
        if depth < 2 and random.random() < 0.3:
            nodes[position] = msgspec.structs.replace(nodes[position], each=[])
            deeper = random_workflow(random, random.randint(0, 5), f"{scope}{each.key}:", depth + 1)
            inside |= {nodes[position].key: deeper.nodes, **deeper.inside}
    return Wanted(nodes, inside)


def fates_of(nodes: list[Node], inside: dict[str, list[Node]], outcomes: dict[str, JobState]) -> dict[str, JobState]:
    """How each node ends, in topological order; a group as a run of its members."""
    fates: dict[str, JobState] = {}
    for key in Graph(nodes).nodes:
        each = next(node for node in nodes if node.key == key)
        satisfied = sum(holds(edge, fates[parent]) for parent, edge in each.edges())
        if satisfied < wanted_of(each):
            fates[key] = SKIPPED
        elif key in inside:
            deeper = fates_of(inside[key], inside, outcomes)
            own = {node.key: deeper[node.key] for node in inside[key]}
            fates |= {**deeper, key: AS_NODE[verdict(inside[key], own)]}
        else:
            fates[key] = outcomes[key]
    return fates


AS_NODE = {RunState.SUCCEEDED: SUCCEEDED, RunState.FAILED: DEAD, RunState.CANCELLED: CANCELLED}


def play(run: Run, inside: dict[str, list[Node]], outcomes: dict[str, JobState], random: Random) -> None:
    """Opens groups and ends jobs in a random order until nothing runs."""
    while live := sorted(key for key in run.released if key not in run.ended and key not in run.opened):
        key = random.choice(live)
        if key in inside:
            run.open(key, inside[key])
        else:
            run.note(key, outcomes[key])


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30), health=st.sampled_from([0.5, 0.9, 1.0]))
def test_groups_in_groups_end_as_the_oracle_says(seed: int, count: int, health: float) -> None:
    random = Random(seed)
    wanted = random_workflow(random, count)
    keys = [each.key for nodes in (wanted.nodes, *wanted.inside.values()) for each in nodes]
    outcomes = {key: SUCCEEDED if random.random() < health else random.choice([DEAD, CANCELLED]) for key in keys}
    run = Run(wanted.nodes)
    run.start()

    play(run, wanted.inside, outcomes, random)

    fates = fates_of(wanted.nodes, wanted.inside, outcomes)
    assert run.ended == fates
    assert run.state is verdict(wanted.nodes, {each.key: fates[each.key] for each in wanted.nodes})


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30))
def test_a_run_that_is_retried_from_a_node_ends_as_if_it_had_gone_so_at_once(seed: int, count: int) -> None:
    random = Random(seed)
    wanted = random_workflow(random, count)
    keys = [each.key for nodes in (wanted.nodes, *wanted.inside.values()) for each in nodes]
    outcomes = {key: random.choice([SUCCEEDED, SUCCEEDED, DEAD, CANCELLED]) for key in keys}
    run = Run(wanted.nodes)
    run.start()
    play(run, wanted.inside, outcomes, random)
    begin = random.choice(sorted(run.released))
    ran = set(run.released)
    stood = [
        Stood(node, run.scope_of[key], key in run.released, run.ended.get(key)) for key, node in run.graph.nodes.items()
    ]
    assert Run.restored(stood).redo(begin) == run.redo(begin)

    decision = run.retry(begin)

    assert begin in decision.released
    again = {begin, *decision.reopened, *(ran - run.released)}
    after = dict(outcomes)
    for key in keys:
        if key in again or key not in run.ended:
            after[key] = random.choice([SUCCEEDED, DEAD, CANCELLED])
    play(run, wanted.inside, after, random)
    assert run.ended == fates_of(wanted.nodes, wanted.inside, after)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30))
def test_failed_nodes_that_all_succeed_when_they_are_retried_leave_nothing_failed(seed: int, count: int) -> None:
    random = Random(seed)
    wanted = random_workflow(random, count)
    keys = [each.key for nodes in (wanted.nodes, *wanted.inside.values()) for each in nodes]
    run = Run(wanted.nodes)
    run.start()
    play(run, wanted.inside, {key: random.choice([SUCCEEDED, DEAD]) for key in keys}, random)
    ran_well = {key for key, state in run.ended.items() if state is SUCCEEDED and key not in wanted.inside}
    assume(any(state is DEAD and key not in wanted.inside for key, state in run.ended.items()))

    again = run.retry().released
    play(run, wanted.inside, dict.fromkeys(keys, SUCCEEDED), random)

    assert ran_well.isdisjoint(again), "what has run well does not run again"
    assert not FAILURES & set(run.ended.values())
    assert run.state is RunState.SUCCEEDED


def test_the_oracle_of_groups_is_right_about_a_small_one() -> None:
    nodes, inside = [group(), node("after", on_failure="g")], {"g": [node("g:0"), node("g:1")]}

    assert fates_of(nodes, inside, {"g:0": SUCCEEDED, "g:1": DEAD, "after": SUCCEEDED}) == {
        "g:0": SUCCEEDED,
        "g:1": DEAD,
        "g": DEAD,
        "after": SUCCEEDED,
    }
