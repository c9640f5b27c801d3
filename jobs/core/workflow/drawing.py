"""A workflow as text: each node stands below the last of its parents, and says what it waits for beyond its success.

extract  report.extract
├─ load  report.load
│  ├─ ok  notify
│  ├─ alarm  notify · if extract or load fails
│  └─ clean  tidy · when load ends
└─ page:0  report.page  and 99 more to page:99
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jobs.core.workflow.definition import Edge, Node
from jobs.core.workflow.graph import Graph

MOST_ALIKE = 5
"""Siblings that differ in nothing but their key and payload are drawn one by one up to this number."""

MOST_NAMED = 5
"""Parents that a node's words name."""


class Twig(NamedTuple):
    """One line of the drawing, in its parts: what stands before the name, the nodes, and words for those with more."""

    branch: str
    node: Node
    keys: Sequence[str]
    waits: str

    @property
    def more(self) -> str:
        """``  and 99 more to page:99``; nothing for a line of one node."""
        return f"  and {len(self.keys) - 1:,} more to {self.keys[-1]}" if len(self.keys) > 1 else ""


def draw(graph: Graph) -> Iterator[str]:
    """The lines."""
    for twig in twigs(graph):
        waits = f" · {twig.waits}" if twig.waits else ""
        yield f"{twig.branch}{twig.node.key}  {twig.node.label}{twig.more}{waits}"


def twigs(graph: Graph) -> Iterator[Twig]:
    """The lines in their parts."""
    below: dict[str | None, list[str]] = {}
    for key in graph.nodes:
        below.setdefault(_place(graph, key), []).append(key)
    # A stack of our own: a chain of thousands is deeper than Python's.
    waiting = _drawn_below(graph, below.get(None, []), None)
    while waiting:
        indent, alike, is_last = waiting.pop()
        node = graph.nodes[alike[0]]
        branch = "" if indent is None else f"{indent}{'└─ ' if is_last else '├─ '}"
        yield Twig(branch, node, alike, waits(graph, node.key))
        inside = "" if indent is None else f"{indent}{'   ' if is_last else '│  '}"
        waiting += _drawn_below(graph, [child for key in alike for child in below.get(key, [])], inside)


def waits(graph: Graph, key: str) -> str:
    """What the node waits for, in words; nothing for one that waits for nobody, or for the success of one parent."""
    parents = graph.parents[key]
    if not parents or (len(parents) == 1 and Edge.SUCCESS in parents.values()):
        return ""
    join = graph.nodes[key].join
    word = "and" if join == "all" else "or"
    phrases = [
        _PHRASES[kind](listed([parent for parent, of in parents.items() if of is kind], word), word)
        for kind in Edge
        if kind in parents.values()
    ]
    number = f"at least {join}: " if isinstance(join, int) and join > 1 else ""
    return number + f" {word} ".join(phrases)


def _place(graph: Graph, key: str) -> str | None:
    """The parent below which a node is drawn."""
    return max(graph.parents[key], key=graph.rank.__getitem__, default=None)


def _drawn_below(graph: Graph, keys: list[str], indent: str | None) -> list[tuple[str | None, list[str], bool]]:
    """(indent, nodes of one line, whether it is the last) in the order of a stack."""
    lines = _alike(graph, keys)
    return [(indent, line, number == len(lines) - 1) for number, line in enumerate(lines)][::-1]


def _alike(graph: Graph, keys: list[str]) -> list[list[str]]:
    """The keys in order, those that are alike as one where they are too many to be drawn."""
    groups: dict[object, list[str]] = {}
    for key in keys:
        node = graph.nodes[key]
        groups.setdefault((node.kind, node.label, node.join, tuple(graph.parents[key].items())), []).append(key)
    lines: list[list[str]] = []
    for group in groups.values():
        lines += [group] if len(group) > MOST_ALIKE else [[key] for key in group]
    return lines


def listed(names: list[str], word: str) -> str:
    """``a, b and 98 more``: the first few of the names, joined by ``word``."""
    more = [f"{len(names) - MOST_NAMED + 1:,} more"] if len(names) > MOST_NAMED else []
    *first, last = names[: MOST_NAMED - 1] + more if more else names
    return f"{', '.join(first)} {word} {last}" if first else last


def _fail(names: str, word: str) -> str:
    return f"if {names} {'fail' if f' {word} ' in names and word == 'and' else 'fails'}"


def _end(names: str, word: str) -> str:
    return f"when {names} {'end' if f' {word} ' in names and word == 'and' else 'ends'}"


_PHRASES: dict[Edge, Callable[[str, str], str]] = {
    Edge.SUCCESS: lambda names, word: f"after {names}",
    Edge.FAILURE: _fail,
    Edge.COMPLETE: _end,
}
