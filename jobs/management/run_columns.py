"""What people see of runs of workflows: the list, and one run with its graph as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec

from jobs.api.workflows import NodeView, RunFacts
from jobs.core.states import JobState
from jobs.core.workflow import Graph, Node, twigs, why_skipped, why_waiting
from jobs.management.durations import spoken
from jobs.management.output import STYLES, Column, Output, Painted

MOST_NAMED = 20
"""Nodes that one remark names."""

SHAPES = {
    "succeeded": "✓",
    "dead": "✗",
    "leased": "▶",
    "ready": "▷",
    "retry_wait": "↻",
    "scheduled": "◷",
    "blocked": "◇",
    "cancelled": "▣",
    "skipped": "»",
}
"""State → how a node in it is marked on a terminal, as on the dashboard: outlines have not started."""
TROUBLE = ("dead", "leased", "retry_wait", "ready", "scheduled", "cancelled", "blocked", "skipped", "succeeded")
"""The order in which states matter to somebody who looks at many nodes at once."""

ENDS = ("succeeded", "dead", "cancelled", "skipped")


def took(run: RunFacts) -> timedelta | None:
    return None if run.seconds is None else timedelta(seconds=run.seconds)


def state_word(run: RunFacts) -> str:
    """The state in the words of a person: a pause, and a cancel under way, are said."""
    if run.is_over:
        return run.state
    if run.cancelled:
        return f"{run.state} (cancelled, ends soon)"
    return f"{run.state} (paused)" if run.paused else run.state


def counted(counts: dict[str, int]) -> str:
    """``5: 3 succeeded, 2 blocked``."""
    shown = ", ".join(f"{number:,} {state}" for state, number in counts.items() if number)
    return f"{sum(counts.values()):,}: {shown}" if shown else "none"


RUNS: tuple[Column[RunFacts], ...] = (
    Column("RUN", lambda run: run.id),
    Column("WORKFLOW", lambda run: run.name, elastic=True),
    Column("VERSION", lambda run: run.version, right=True),
    Column("STATE", state_word),
    Column("ENDED", lambda run: f"{sum(run.counts.get(end, 0) for end in ENDS):,} of {run.total:,}", right=True),
    Column("CREATED", lambda run: run.created_at),
    Column("TOOK", took),
)


def show_run(output: Output, run: RunFacts, nodes: Sequence[NodeView]) -> None:
    """A run: what is known of it, then its graph, with how each node stands and why it waits or was skipped."""
    stands = Counter(_word(view) for view in nodes)
    output.facts(
        [
            ("run", run.id),
            ("workflow", run.name if run.version is None else f"{run.name}, version {run.version}"),
            ("state", state_word(run)),
            ("paused", _who_and_why(run.paused)),
            ("cancelled", _who_and_why(run.cancelled)),
            ("created", run.created_at),
            ("finished", run.finished_at),
            ("took", took(run)),
            ("started by", run.started_by),
            ("nodes", counted(dict(stands))),
        ]
    )
    output.line("")
    for parts in drawn(nodes, has_shapes=output.rich and output.carries("".join(SHAPES.values()))):
        output.painted(parts)


def drawn(nodes: Sequence[NodeView], *, has_shapes: bool = False) -> Iterator[list[Painted]]:
    """The graph of a run as lines, each in (text, style); nodes that others opened into stand below those.

    ``has_shapes``: each line shows the state of its nodes, or the worst of them, as a shape too.
    """
    views = {view.key: view for view in nodes}
    graph = Graph(_below_its_group(view) for view in nodes)
    states = {view.key: JobState(view.state) for view in nodes if view.state in set(JobState)}
    for twig in twigs(graph):
        there = [views[key] for key in twig.keys]
        worst = min(there, key=lambda view: TROUBLE.index(view.state)).state
        yield [
            (twig.branch, "dim"),
            *([(f"{SHAPES[worst]} ", STYLES.get(worst, ""))] if has_shapes else []),
            (twig.node.key, "bold"),
            (f"  {twig.node.label}{twig.more}: ", ""),
            *(_counted(there) if len(there) > 1 else _stands(there[0], graph, states)),
            (f" · {twig.waits}" if twig.waits else "", "dim"),
        ]


def _counted(views: Sequence[NodeView]) -> Iterator[Painted]:
    """``28 succeeded, 2 dead``"""
    for place, (word, number) in enumerate(Counter(map(_word, views)).items()):
        yield ", " if place else "", ""
        yield f"{number:,} {word}", STYLES.get(word, "")


def _below_its_group(view: NodeView) -> Node:
    node = view.node if view.node.key == view.key else msgspec.structs.replace(view.node, key=view.key)
    if view.scope and not any(True for _ in node.edges()):
        return msgspec.structs.replace(node, depends_on=(view.scope,))
    return node


def _stands(view: NodeView, graph: Graph, states: dict[str, JobState]) -> Iterator[Painted]:
    """How a node stands, how long it took, and why where that is the question."""
    word = _word(view)
    yield word, STYLES.get(word, STYLES.get(view.state, ""))
    if view.seconds is not None and not view.skipped:
        yield f" in {spoken(timedelta(seconds=view.seconds))}", ""
    yield _why(view, graph, states), ""


def _why(view: NodeView, graph: Graph, states: dict[str, JobState]) -> str:
    if view.skipped:
        return f". {view.skipped}"
    if view.error:
        return f", {view.error.get('type')}: {view.error.get('message')}"
    if view.state == JobState.BLOCKED:
        return f". {why_waiting(graph, states, view.key)}".removesuffix(".")
    if view.state == JobState.SKIPPED:
        return f". {why_skipped(graph, states, view.key)}".removesuffix(".")
    return ""


def _word(view: NodeView) -> str:
    if view.kind.is_wait and view.state == JobState.READY:
        return view.kind.wait_word
    return "running" if view.state == JobState.LEASED else view.state


def _who_and_why(what: object) -> str | None:
    if not isinstance(what, dict):
        return None
    return f"by {what.get('by') or 'somebody'}: {what.get('reason') or ''}".removesuffix(": ")


def named(keys: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = f" and {len(keys) - MOST_NAMED:,} more" if len(keys) > MOST_NAMED else ""
    return ", ".join(keys[:MOST_NAMED]) + more
