"""Why a node waits, and why it never ran."""

from __future__ import annotations

import pytest

from jobs.core.states import JobState
from jobs.core.workflow import Graph, Node, why_skipped, why_waiting

GRAPH = Graph(
    [
        Node(key="extract", type="t"),
        Node(key="load", type="t", depends_on=("extract",)),
        Node(key="clean", type="t", on_complete=("load",)),
        Node(key="merge", type="t", depends_on=("extract", "load")),
        Node(key="alarm", type="t", on_failure=("extract", "load"), join="any"),
        Node(key="two", type="t", depends_on=("extract", "load", "merge"), join=2),
        Node(key="mixed", type="t", depends_on=("extract",), on_failure=("load",)),
    ]
)


def states(**words: str) -> dict[str, JobState]:
    return {key: JobState(word) for key, word in words.items()}


@pytest.mark.parametrize(
    ("key", "known", "sentence"),
    [
        ("extract", {}, "Waits for the run to begin."),
        ("load", {"extract": "leased"}, "Waits for extract (running)."),
        ("load", {"extract": "succeeded"}, "Is about to be released."),
        ("merge", {"extract": "retry_wait"}, "Waits for extract (waits for a retry) and load (waits itself)."),
        ("merge", {"extract": "succeeded", "load": "ready"}, "Waits for load (under way)."),
        ("clean", {"load": "scheduled"}, "Waits for load (scheduled) to end."),
        ("alarm", {"extract": "leased"}, "Waits for extract (running) or load (waits itself) to fail."),
        (
            "two",
            {"extract": "leased", "load": "leased"},
            "Waits for 2 of extract (running), load (running) or merge (waits itself).",
        ),
        ("mixed", {"extract": "leased"}, "Waits for extract (running) and load (waits itself) to fail."),
    ],
)
def test_a_node_waits(key: str, known: dict[str, str], sentence: str) -> None:
    assert why_waiting(GRAPH, states(**known), key) == sentence


@pytest.mark.parametrize(
    ("key", "known", "sentence"),
    [
        ("load", {"extract": "dead"}, "extract is dead, and it runs only after its success."),
        ("load", {"extract": "skipped"}, "extract is skipped, and it runs only after its success."),
        (
            "merge",
            {"extract": "dead", "load": "dead"},
            "extract and load are dead, and it runs only after their success.",
        ),
        (
            "alarm",
            {"extract": "succeeded", "load": "succeeded"},
            "extract and load succeeded, and it runs only after the failure of a parent.",
        ),
        (
            "two",
            {"extract": "dead", "load": "skipped"},
            "extract and load ended otherwise, and it runs only after the success of 2 of its 3 parents.",
        ),
        (
            "mixed",
            {"extract": "dead", "load": "succeeded"},
            "extract and load ended otherwise, which is not what it waits for.",
        ),
        ("clean", {}, "Its condition could no longer hold."),
    ],
)
def test_a_node_never_ran(key: str, known: dict[str, str], sentence: str) -> None:
    assert why_skipped(GRAPH, states(**known), key) == sentence


def test_of_many_parents_some_are_named() -> None:
    pages = [Node(key=f"page:{number}", type="t") for number in range(100)]
    graph = Graph([*pages, Node(key="merge", type="t", depends_on=tuple(page.key for page in pages))])

    assert why_waiting(graph, {}, "merge").endswith("page:3 (waits itself) and 96 more.")
