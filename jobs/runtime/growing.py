"""Nodes that a handler adds to its run while it goes on. It may be repeated: what is there already stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jobs.core.payload import dumps
from jobs.core.workflow import Node, Problem, read_node, refuse
from jobs.core.workflow.definition import EDGES
from jobs.engine import Engine
from jobs.engine.run_nodes import in_order
from jobs.exceptions import WorkflowInvalid, WrongState
from jobs.runtime.node_checks import type_problems
from jobs.runtime.relaying import Relay


def grow(relay: Relay, run_id: str, by: str, raw_nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Adds nodes to a run beside the node ``by``, whose job asks for it, and has them begin; their keys. What is there
    already stays.

    Keys and edges are those of the group that it is in. WorkflowInvalid; WrongState where that node is over.
    """
    engine = relay.engine
    adder = engine.workflows.node(run_id, by)
    if adder is None or adder.is_over:
        raise WrongState(
            f"Node {by!r} of run {run_id} is over: only one that runs can add nodes.",
            state=adder.state if adder else None,
        )
    nodes = [read_node(_as_json(raw)) for raw in raw_nodes]
    refuse(problem for node in nodes for problem in type_problems(node))
    inside = [_in_scope(node, adder.scope) for node in nodes]
    _refuse_unknown_parents(engine, run_id, inside)
    depth = sum(1 for _ in _groups_around(engine, run_id, adder.scope))
    engine.workflows.touch(run_id)
    engine.workflows.add(run_id, in_order(inside), scope=adder.scope, depth=depth, is_growth=True)
    relay.pursue(run_id)
    return [node.key for node in inside]


def _as_json(raw: Mapping[str, Any]) -> Any:
    """What JSON makes of it: dates in payloads become text, and so on."""
    try:
        return msgspec.json.decode(dumps(raw))
    except ValueError as error:
        raise WorkflowInvalid(f"Node {raw.get('key')!r}: {error}") from None


def _in_scope(node: Node, scope: str) -> Node:
    if not scope:
        return node
    edges = {field: tuple(f"{scope}:{parent}" for parent in getattr(node, field)) for field in EDGES}
    return msgspec.structs.replace(node, key=f"{scope}:{node.key}", **edges)


def _groups_around(engine: Engine, run_id: str, scope: str) -> Iterator[str]:
    while scope:
        yield scope
        around = engine.workflows.node(run_id, scope)
        scope = around.scope if around else ""


def _refuse_unknown_parents(engine: Engine, run_id: str, nodes: Sequence[Node]) -> None:
    new = {node.key for node in nodes}
    wanted = {parent for node in nodes for parent, _ in node.edges()} - new
    missing = wanted - engine.workflows.known(run_id, wanted)
    refuse(
        Problem((node.key, parent), f"Node {node.key!r} waits for {parent!r}, which is no node of the run")
        for node in nodes
        for parent, _ in node.edges()
        if parent in missing
    )
