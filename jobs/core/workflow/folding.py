"""A workflow as so many boxes as a person can look at: nodes that are alike are drawn as one, with their number.

Which nodes share a box depends on the definition alone, never on how a run goes, so a picture keeps its shape while it
is coloured. Boxes have no cycles between them, whatever was folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from jobs.core.workflow.definition import Edge
from jobs.core.workflow.graph import Graph

FOLD_ABOVE = 50
"""Alike nodes beyond this number are one box, however small the rest is."""

_NUMBERED = re.compile(r"(.+?)[:_-]?[0-9]+")
_STRIPES = 24
"""Boxes that are left of a workflow that nothing else makes small enough."""


@dataclass(frozen=True)
class Box:
    """One node, or several that are drawn as one. ``key`` is its first node's."""

    nodes: tuple[str, ...]
    name: str

    @property
    def key(self) -> str:
        return self.nodes[0]

    @property
    def is_stack(self) -> bool:
        return len(self.nodes) > 1


@dataclass(frozen=True)
class Link:
    """All edges of one kind between two boxes."""

    source: str
    target: str
    kind: Edge
    edges: int = 1


@dataclass(frozen=True)
class Folded:
    """Boxes in an order in which parents come first, and what connects them."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]

    @cached_property
    def box_of(self) -> dict[str, Box]:
        """Node → its box."""
        return {key: box for box in self.boxes for key in box.nodes}


def foldings(graph: Graph) -> Iterator[Folded]:
    """The workflow with more and more of it folded, each time into fewer boxes: take the first that is small enough.

    First only large crowds of alike nodes share a box, then all that are alike, then those of one type at one depth,
    at last whole stretches of depth.
    """
    alike, depth = _alike(graph), depths(graph)
    deepest = max(depth.values(), default=0) + 1
    yield _folded(graph, alike.__getitem__, more_than=FOLD_ABOVE)
    yield _folded(graph, alike.__getitem__)
    yield _folded(graph, lambda key: (depth[key], graph.nodes[key].label))
    yield _folded(graph, lambda key: depth[key] * min(_STRIPES, deepest) // deepest)


def depths(graph: Graph) -> dict[str, int]:
    """Node → edges of the longest way that leads to it."""
    found: dict[str, int] = {}
    for key in graph.nodes:
        found[key] = max((found[parent] + 1 for parent in graph.parents[key]), default=0)
    return found


def _alike(graph: Graph) -> dict[str, Hashable]:
    """Node → a value that is equal for nodes with the same kind of past and the same kind of future.

    So a fan-out is one crowd, and so is each step of a hundred chains beside each other.
    """
    numbers: dict[Hashable, int] = {}

    def number(what: Hashable) -> int:
        return numbers.setdefault(what, len(numbers))

    past: dict[str, int] = {}
    for key, node in graph.nodes.items():
        parents = frozenset((past[parent], kind) for parent, kind in graph.parents[key].items())
        past[key] = number(("past", _family(key), node.label, node.join, parents))
    future: dict[str, int] = {}
    for key in reversed(graph.nodes):
        children = frozenset((future[child], graph.parents[child][key]) for child in graph.children[key])
        future[key] = number(("future", past[key], children))
    return dict(future)


def _family(key: str) -> str:
    """``page`` of ``page:17``; nodes with names of their own are told apart by what they do."""
    found = _NUMBERED.fullmatch(key)
    return found[1] if found else ""


def _folded(graph: Graph, crowd_of: Callable[[str], Hashable], more_than: int = 1) -> Folded:
    crowds: dict[Hashable, list[str]] = {}
    for key in graph.nodes:
        crowds.setdefault(crowd_of(key), []).append(key)
    groups: list[list[str]] = []
    for keys in crowds.values():
        groups += [keys] if len(keys) > more_than else [[key] for key in keys]
    boxes = {keys[0]: Box(tuple(keys), _name(graph, keys)) for keys in groups}
    owner = {key: keys[0] for keys in groups for key in keys}
    counted: dict[tuple[str, str, Edge], int] = {}
    for key in graph.nodes:
        for parent, kind in graph.parents[key].items():
            if owner[parent] != owner[key]:
                link = owner[parent], owner[key], kind
                counted[link] = counted.get(link, 0) + 1
    links = tuple(Link(source, target, kind, edges) for (source, target, kind), edges in counted.items())
    return Folded(tuple(boxes[key] for key in _in_order(graph, boxes, links)), links)


def _in_order(graph: Graph, boxes: dict[str, Box], links: tuple[Link, ...]) -> list[str]:
    """Each box after those that lead to it, else as in the definition."""
    before: dict[str, set[str]] = {key: set() for key in boxes}
    after: dict[str, list[str]] = {key: [] for key in boxes}
    for link in links:
        before[link.target].add(link.source)
        if link.target not in after[link.source]:
            after[link.source].append(link.target)
    free = sorted((key for key, sources in before.items() if not sources), key=graph.rank.__getitem__)
    ordered: list[str] = []
    while free:
        ordered += free
        reached: set[str] = set()
        for key in free:
            for target in after[key]:
                before[target].discard(key)
                if not before[target]:
                    reached.add(target)
        free = sorted(reached, key=graph.rank.__getitem__)
    return ordered


def _name(graph: Graph, keys: list[str]) -> str:
    """What a box is called: its node, the family of its nodes, else their type."""
    if len(keys) == 1:
        return keys[0]
    families = {_family(key) for key in keys}
    if len(families) == 1 and (family := families.pop()):
        return family
    types = {graph.nodes[key].label for key in keys}
    return types.pop() if len(types) == 1 else f"{keys[0]} … {keys[-1]}"
