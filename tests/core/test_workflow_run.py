"""A run against an oracle: what a node's end leads to, whatever the graph, the outcomes and the order they come in."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.states import JobState
from jobs.core.workflow import Decision, Node, Run, RunState
from tests.support.graphs import (
    CANCELLED,
    DEAD,
    FAILURES,
    SKIPPED,
    SUCCEEDED,
    holds,
    oracle,
    random_nodes,
    verdict,
    wanted_of,
)


def node(key: str, **fields: Any) -> Node:
    return Node(
        key=key,
        type="t",
        **{
            name: tuple(value.split()) if name.startswith(("depends", "on_")) else value
            for name, value in fields.items()
        },
    )


# From the contract, one sentence each --------------------------------------------------------------------------------


NIGHTLY = (
    node("extract"),
    node("load", depends_on="extract"),
    node("ok", on_success="load"),
    node("alarm", on_failure="extract load", join="any"),
    node("clean", on_complete="load"),
)


def ends(run: Run, **states: JobState) -> Decision:
    """Tells the run how nodes ended, in this order; the last decision."""
    decision = Decision()
    for key, state in states.items():
        decision = run.note(key, state)
    return decision


def started(*nodes: Node) -> Run:
    run = Run(nodes)
    run.start()
    return run


def test_a_run_starts_with_the_nodes_that_wait_for_nobody() -> None:
    assert Run([node("a"), node("b", depends_on="a"), node("c")]).start().released == ("a", "c")


def test_all_goes_well() -> None:
    run = started(*NIGHTLY)

    assert run.note("extract", SUCCEEDED).released == ("load",)
    assert run.note("load", SUCCEEDED) == Decision(released=("ok", "clean"), skipped=("alarm",))
    assert ends(run, ok=SUCCEEDED, clean=SUCCEEDED).state is RunState.SUCCEEDED


def test_a_failure_skips_what_wants_success_and_that_spreads() -> None:
    run = started(*NIGHTLY)

    # The clean-up runs although its parent was skipped: that is an end too.
    assert run.note("extract", DEAD) == Decision(released=("alarm", "clean"), skipped=("load", "ok"))


@pytest.mark.parametrize(
    ("nodes", "outcomes", "expected"),
    [
        ([node("a")], {"a": DEAD}, RunState.FAILED),
        ([node("a")], {"a": CANCELLED}, RunState.CANCELLED),
        ([node("a"), node("b", on_failure="a")], {"a": DEAD, "b": SUCCEEDED}, RunState.SUCCEEDED),
        ([node("a"), node("b", on_complete="a")], {"a": DEAD, "b": SUCCEEDED}, RunState.SUCCEEDED),
        ([node("a"), node("b", on_failure="a")], {"a": DEAD, "b": DEAD}, RunState.FAILED),
        ([node("a"), node("b", depends_on="a")], {"a": DEAD}, RunState.FAILED),
        ([node("a"), node("b"), node("c", on_failure="a b")], {"a": DEAD, "b": SUCCEEDED}, RunState.FAILED),
    ],
    ids=[
        "dead",
        "cancelled by hand",
        "covered by on_failure",
        "covered by on_complete",
        "the cover is dead itself",
        "on_success covers nothing",
        "a cover that was skipped covers nothing",
    ],
)
def test_a_run_fails_where_a_dead_node_is_covered_by_no_child(
    nodes: list[Node], outcomes: dict[str, JobState], expected: RunState
) -> None:
    assert ends(started(*nodes), **outcomes).state is expected


@pytest.mark.parametrize(
    ("join", "first", "second", "third"),
    [("all", "", "", "released"), ("any", "released", "", ""), (2, "", "released", "")],
)
def test_a_join_wants_all_any_or_a_number_of_its_parents(join: Any, first: str, second: str, third: str) -> None:
    run = started(node("a"), node("b"), node("c"), node("d", depends_on="a b c", join=join))

    decisions = [run.note(key, SUCCEEDED) for key in "abc"]

    assert [("released" if decision.released else "") for decision in decisions] == [first, second, third]


def test_a_join_is_given_up_as_soon_as_too_many_parents_ended_otherwise() -> None:
    run = started(*map(node, "abcd"), node("e", depends_on="a b c d", join=3))

    assert run.note("a", DEAD).skipped == ()
    assert run.note("b", DEAD).skipped == ("e",)


def test_news_that_are_told_again_change_nothing() -> None:
    run = started(*NIGHTLY)
    for _ in range(3):
        run.start()
        assert run.note("extract", JobState.READY) == Decision()
    assert run.note("extract", SUCCEEDED).released == ("load",)
    assert run.note("extract", SUCCEEDED) == Decision()


def test_a_node_that_was_never_released_has_no_news() -> None:
    with pytest.raises(ValueError, match="'load' was never released"):
        started(*NIGHTLY).note("load", SUCCEEDED)


def test_a_dead_node_that_lives_again_reopens_what_was_skipped_and_keeps_what_has_run() -> None:
    run = started(*NIGHTLY)
    ends(run, extract=DEAD, alarm=SUCCEEDED, clean=SUCCEEDED)
    assert run.state is RunState.SUCCEEDED  # covered by the alarm

    again = run.note("extract", JobState.READY)  # somebody resubmitted it

    assert again == Decision(reopened=("load", "ok"), state=RunState.RUNNING)
    assert run.note("extract", SUCCEEDED).released == ("load",)
    assert run.note("load", SUCCEEDED).released == ("ok",)
    assert run.note("ok", SUCCEEDED).state is RunState.SUCCEEDED


def test_a_skipping_that_is_taken_back_is_not_taken_for_an_end_by_the_same_event() -> None:
    # d waits for a's success and for any end of c. When a dies, b, c and d are skipped. When a succeeds after all, c
    # waits again, and so does d, although for a moment both of its parents were as it wants.
    run = started(
        node("a"), node("b", depends_on="a"), node("c", depends_on="b"), node("d", on_success="a", on_complete="c")
    )
    assert run.note("a", DEAD).skipped == ("b", "c", "d")

    decision = run.note("a", SUCCEEDED)

    assert decision == Decision(released=("b",), reopened=("c", "d"))
    assert run.note("b", DEAD) == Decision(released=("d",), skipped=("c",))


def test_a_cancelled_run_starts_only_what_is_marked_always() -> None:
    run = started(
        node("a"), node("b", depends_on="a"), node("c", on_complete="b"), node("d", on_complete="b", always=True)
    )

    decision = run.cancel()

    assert decision == Decision(released=("d",), cancelled=("b", "c"))
    assert run.cancel() == Decision()
    assert ends(run, a=CANCELLED, d=SUCCEEDED).state is RunState.CANCELLED


def test_a_node_that_comes_later_finds_the_parents_that_ended_before() -> None:
    run = started(node("a"), node("b"))
    run.note("a", SUCCEEDED)

    decision = run.add([node("c", depends_on="a"), node("d", depends_on="a b"), node("e", on_failure="a")])

    assert decision == Decision(released=("c",), skipped=("e",))
    assert run.add([node("c", depends_on="a")]) == Decision()  # told twice
    assert run.note("b", SUCCEEDED).released == ("d",)


def test_a_join_of_ten_thousand_costs_each_parent_its_own_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = [f"p{number}" for number in range(10_000)]
    run = started(*map(node, parents), node("all", depends_on=" ".join(parents)))
    told: list[str] = []
    tell = Run._tell
    monkeypatch.setattr(
        Run, "_tell", lambda self, parent, child, state: told.append(parent) or tell(self, parent, child, state)
    )

    released = [run.note(parent, SUCCEEDED).released for parent in parents]

    assert released == [()] * 9_999 + [("all",)]
    assert told == parents


def test_a_node_that_has_failed_can_be_skipped_and_one_that_has_succeeded_cannot() -> None:
    run = started(*NIGHTLY)
    ends(run, extract=SUCCEEDED, load=DEAD)
    assert run.ended["ok"] is SKIPPED

    decision = run.skip("load")

    assert decision.released == ("ok",)
    with pytest.raises(ValueError, match="'load' cannot be skipped"):
        run.skip("load")


# Whatever the graph --------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), health=st.sampled_from([0.5, 0.9, 1.0]))
def test_every_node_ends_as_the_oracle_says_in_whatever_order_news_come(seed: int, count: int, health: float) -> None:
    random = Random(seed)
    nodes = random_nodes(random, count)
    outcomes = {each.key: SUCCEEDED if random.random() < health else random.choice(FAILURES) for each in nodes}
    by_key = {each.key: each for each in nodes}
    fates = oracle(nodes, outcomes)
    run = Run(nodes)
    seen_end: dict[str, JobState] = {}
    releases: list[str] = []

    def hear(decision: Decision) -> None:
        for key in decision.skipped:
            seen_end[key] = SKIPPED
        for key in decision.released:
            ended = sum(holds(edge, seen_end[parent]) for parent, edge in by_key[key].edges() if parent in seen_end)
            assert ended >= wanted_of(by_key[key]), f"{key} was released early"
        releases.extend(decision.released)
        assert decision.reopened == decision.cancelled == ()

    hear(run.start())
    while running := [key for key in releases if key not in seen_end]:
        key = random.choice(running)
        if random.random() < 0.3:
            assert run.note(key, random.choice([JobState.LEASED, JobState.RETRY_WAIT])) == Decision()
        seen_end[key] = outcomes[key]
        decision = run.note(key, outcomes[key])
        hear(decision)
        told_before = random.choice(list(seen_end))
        if told_before in run.released:
            assert run.note(told_before, seen_end[told_before]) == Decision(state=decision.state)

    assert len(releases) == len(set(releases)), "no node is released twice"
    assert seen_end == fates == run.ended
    assert run.state is verdict(nodes, fates)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_whatever_is_resubmitted_each_waiting_node_stands_where_its_parents_put_it(seed: int, count: int) -> None:
    random = Random(seed)
    nodes = random_nodes(random, count)
    run = Run(nodes)
    released = set(run.start().released)
    for _ in range(4 * count):
        key = random.choice(sorted(run.released))
        lives_again = run.ended.get(key) in FAILURES and random.random() < 0.5
        if key in run.ended and not lives_again:
            continue
        decision = run.note(key, JobState.READY if lives_again else random.choice([SUCCEEDED, *FAILURES]))
        assert released.isdisjoint(decision.released), "no node is released twice"
        released.update(decision.released)

        for each in nodes:
            if each.key in released and each.key not in decision.released:
                continue
            ends = [(edge, run.ended.get(parent)) for parent, edge in each.edges()]
            satisfied = sum(end is not None and holds(edge, end) for edge, end in ends)
            lost = sum(end is not None and not holds(edge, end) for edge, end in ends)
            assert (satisfied >= wanted_of(each)) == (each.key in decision.released)
            assert (run.ended.get(each.key) is SKIPPED) == (len(ends) - lost < wanted_of(each))
        assert (run.state is RunState.RUNNING) == (len(run.ended) < count)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 100))
def test_nodes_that_are_skipped_before_they_run_count_as_succeeded(seed: int, count: int) -> None:
    random = Random(seed)
    nodes = random_nodes(random, count)
    outcomes = {each.key: SUCCEEDED if random.random() < 0.7 else random.choice(FAILURES) for each in nodes}
    skipped = random.sample(sorted(outcomes), count // 3)
    run = Run(nodes)
    running = set(run.start().released)
    for key in skipped:
        running.update(run.skip(key).released)
        running.discard(key)
    while running:
        key = random.choice(sorted(running))
        running.discard(key)
        running.update(run.note(key, outcomes[key]).released)

    fates = oracle(nodes, outcomes, forced=skipped)
    assert run.ended == fates
    assert run.state is verdict(nodes, fates)


def test_the_oracle_itself_is_right_about_the_contract() -> None:
    nodes = [
        node("n0"),
        node("n1", depends_on="n0"),
        node("n2", on_success="n1"),
        node("n3", on_failure="n0 n1", join="any"),
        node("n4", on_complete="n1"),
    ]
    well = dict.fromkeys(("n0", "n1", "n2", "n3", "n4"), SUCCEEDED)

    assert oracle(nodes, well) == {**well, "n3": SKIPPED}
    assert oracle(nodes, {**well, "n0": DEAD}) == {**well, "n0": DEAD, "n1": SKIPPED, "n2": SKIPPED}
