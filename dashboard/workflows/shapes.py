"""Graphs and pictures of workflows, kept: all runs that have one shape share one, and its boxes never move."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from jobs.core.workflow import Graph, Layout, Node, layout

KEPT = 64
"""So many shapes are remembered by a web process."""


@dataclass(frozen=True)
class Shape:
    """Payloads of ``graph`` may be those of another run; only its edges are this one's."""

    graph: Graph
    layout: Layout


_kept: OrderedDict[bytes, Shape] = OrderedDict()
_lock = threading.Lock()


def shape_of(nodes: Sequence[Node]) -> Shape:
    """The graph of these nodes and where its boxes stand. Parents that are not among them are left out."""
    name = _digest(nodes)
    with _lock:
        if name in _kept:
            _kept.move_to_end(name)
            return _kept[name]
    graph = Graph(nodes)
    shape = Shape(graph, layout(graph))
    with _lock:
        _kept[name] = shape
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return shape


def _digest(nodes: Sequence[Node]) -> bytes:
    """Equal for nodes that are drawn alike."""
    facts = [(node.key, node.type, node.join, list(node.edges())) for node in nodes]
    return blake2b(msgspec.json.encode(facts), digest_size=16).digest()
