"""The nodes of a workflow as a graph: who waits for whom, and an order in which every parent comes first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from jobs.core.workflow.definition import Edge, Node


class Graph:
    """Nodes that hold together (see ``checks``), and nodes that are added later, each after its parents."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes: dict[str, Node] = {}
        self.parents: dict[str, dict[str, Edge]] = {}
        self.children: dict[str, list[str]] = {}
        self.rank: dict[str, int] = {}  # parents have lower ones
        self._next_rank = 0
        by_key = {node.key: node for node in nodes}
        for key in in_order({node.key: [parent for parent, _ in node.edges()] for node in by_key.values()}):
            self.add(by_key[key])

    def add(self, node: Node) -> None:
        """Adds a node whose parents are there."""
        self.nodes[node.key] = node
        self.parents[node.key] = dict(node.edges())
        self.children[node.key] = []
        self.rank[node.key] = self._next_rank
        self._next_rank += 1
        for parent in self.parents[node.key]:
            self.children[parent].append(node.key)

    def remove(self, keys: Iterable[str]) -> None:
        """Takes nodes away that only wait for each other."""
        for key in keys:
            for table in (self.nodes, self.parents, self.children, self.rank):
                table.pop(key, None)

    def downstream(self, key: str) -> list[str]:
        """All that waits for the node, and for those that do."""
        found: dict[str, None] = {}
        waiting = deque(self.children[key])
        while waiting:
            child = waiting.popleft()
            if child not in found:
                found[child] = None
                waiting += self.children[child]
        return sorted(found, key=self.rank.__getitem__)

    def wanted(self, key: str) -> int:
        """How many parents must end as the node waits for it."""
        return self.nodes[key].wanted(len(self.parents[key]))

    def __len__(self) -> int:
        return len(self.nodes)


def in_order(parents: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The keys, each after its parents. Those on a cycle, and those behind it, never come."""
    children: dict[str, list[str]] = {}
    waits_for = {key: set(names) & parents.keys() for key, names in parents.items()}
    for key, names in waits_for.items():
        for name in names:
            children.setdefault(name, []).append(key)
    free = deque(key for key, names in waits_for.items() if not names)
    while free:
        key = free.popleft()
        yield key
        for child in children.get(key, ()):
            waits_for[child].discard(key)
            if not waits_for[child]:
                free.append(child)


def cycles(parents: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Cycles that share no node, each in the order in which its nodes would run."""
    rest = dict(parents)
    while True:
        for key in list(in_order(rest)):
            del rest[key]
        if not rest:
            return
        cycle = _a_cycle(rest)
        yield cycle
        for key in cycle:
            del rest[key]


def _a_cycle(stuck: Mapping[str, Iterable[str]]) -> list[str]:
    """One cycle among keys of which each has a parent among them: walking up must come back."""
    trail: dict[str, None] = {}
    key = next(iter(stuck))
    while key not in trail:
        trail[key] = None
        key = next(parent for parent in stuck[key] if parent in stuck)
    walked = list(trail)
    return walked[walked.index(key) :][::-1]
