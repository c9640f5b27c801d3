"""Nodes on their way into a run and out of it: what scripts are given of them, and what they hand out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jobs.core.job import JobSpec
from jobs.core.workflow import Edge, Kind, Node, graph
from jobs.store.codec.runs import ALWAYS, NO_JOB, decode_node, decode_state, encode_node

EDGES = 200
"""Nodes and edges that are laid in one call, at some 80 µs."""

_KINDS = {Edge.SUCCESS: "s", Edge.FAILURE: "f", Edge.COMPLETE: "c"}


class Handed(NamedTuple):
    """A node that was released and is the caller's to make a job of, for ``CLAIM_MS``."""

    rank: int
    node: Node
    scope: str
    job: str
    """Under which id, where that is fixed already."""
    again: int
    """How often its job was to live again: above 0, it is there."""
    released_at: int
    depth: int
    """Of groups around it."""
    is_always: bool
    """Whether it runs in a cancelled run too."""


class StepReply(NamedTuple):
    """``agenda``: things left to look at. ``claimed``: nodes that others were handed. ``fresh``: how many of the news
    were new. ``has_changed``: the state of the run, by this call."""

    now: int
    state: str
    agenda: int
    claimed: int
    fresh: int
    has_changed: bool
    handed: list[Handed]


class Birth(NamedTuple):
    """The job of a node, as it is to be made."""

    rank: int
    id: str
    run: str
    node: str
    spec: JobSpec
    payload: bytes
    again: int = 0


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """The nodes, each after its parents among them."""
    by_key = {node.key: node for node in nodes}
    parents = {key: [parent for parent, _ in node.edges()] for key, node in by_key.items()}
    return [by_key[key] for key in graph.in_order(parents)]


def calls(nodes: Sequence[Node], scope: str, depth: int, is_always: bool) -> Iterator[tuple[int, list[Any]]]:
    """Items of calls that lay a bounded number of edges each, and how many nodes come after each of them: a node with
    many edges comes in several."""
    items: list[Any] = []
    weight = 0
    for number, node in enumerate(nodes):
        edges = list(dict(node.edges()).items())
        for first in range(0, max(1, len(edges)), EDGES):
            piece = edges[first : first + EDGES]
            if items and weight + 1 + len(piece) > EDGES:
                yield len(nodes) - number - (first > 0), items
                items, weight = [], 0
            items += _item(node, scope, depth, is_always, len(edges), first, piece)
            weight += 1 + len(piece)
    if items:
        yield 0, items


def _item(
    node: Node,
    scope: str,
    depth: int,
    is_always: bool,
    parents: int,
    first: int,
    piece: Sequence[tuple[str, Edge]],
) -> Iterator[Any]:
    flags = (ALWAYS if node.always or is_always else 0) | (0 if node.kind is Kind.JOB else NO_JOB)
    yield from (node.key, node.wanted(parents), parents, flags, depth, scope)
    yield from (encode_node(node) if first == 0 else b"", first, len(piece))
    for parent, kind in piece:
        yield from (_KINDS[kind], parent)


def decode_handed(rank: bytes, raw_state: bytes, raw_node: bytes) -> Handed:
    """A node as ``workflow_step`` hands it out."""
    state, stored = decode_state(raw_state), decode_node(raw_node)
    return Handed(
        int(rank),
        stored.node,
        stored.scope,
        state.job,
        state.again,
        state.released_at,
        stored.depth,
        bool(stored.flags & ALWAYS),
    )
