"""Runs that grow while they go on: groups that open into their members, nodes that begin to wait, and nodes that a
handler adds.

Each of it may be repeated: keys of members are fixed, and what is there already stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jobs.core.payload import dumps
from jobs.core.workflow import Ended, Kind, Node, Problem, members, read_node, references, refuse
from jobs.core.workflow.definition import EACH, EDGES, RUN
from jobs.engine import Engine
from jobs.engine.run_nodes import Handed, in_order
from jobs.exceptions import WorkflowInvalid, WrongState
from jobs.runtime.node_checks import type_problems

if TYPE_CHECKING:
    from jobs.runtime.relaying import Relay


LONGEST_KEY = 250
"""Of a group, in characters: what the store has room for."""


def open_group(relay: Relay, run_id: str, group: Handed) -> None:
    """Adds the members of a released group. WorkflowInvalid, TemplateError: it cannot be opened."""
    engine, key = relay.engine, group.node.key
    set_limit(engine, run_id, group.node, group.released_at)
    if engine.run_control.unfold(run_id, key, is_whole=False) != "opening":
        return
    inside = list(members(group.node, *_values(engine, run_id, group.node)))
    _refuse_too_many(engine, key, inside)
    if group.again:
        engine.run_control.revive(run_id, inside)
    try:
        engine.workflows.add(
            run_id, in_order(inside), scope=key, depth=group.depth + 1, is_always=group.is_always, is_growth=True
        )
    except WorkflowInvalid as error:
        if engine.workflows.facts(run_id).cancelled is None:
            raise WorkflowInvalid(f"Node {key!r} cannot open: {error}", fix=error.fix) from None
    engine.run_control.unfold(run_id, key, is_whole=True)


def begin_wait(relay: Relay, run_id: str, one: Handed) -> None:
    """A released node waits for a signal or a person from now on; when its time is over is written down before."""
    set_limit(relay.engine, run_id, one.node, one.released_at)
    relay.engine.run_control.wait(run_id, one.rank, one.node.signal or "")


def set_limit(engine: Engine, run_id: str, node: Node, since_ms: int) -> None:
    """Writes down when the time of a group, or of what waits, is over; ``since_ms``: it counts from there."""
    if node.kind is not Kind.EACH and node.limit is not None:
        engine.run_control.set_deadline(run_id, since_ms + round(node.limit * 1000), node.key)


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


def _refuse_too_many(engine: Engine, key: str, inside: Sequence[Node]) -> None:
    if len(key) > LONGEST_KEY:
        raise WorkflowInvalid(f"Node {key!r} lies too deep: its key has more than {LONGEST_KEY} characters")
    most = engine.settings.workflow_nodes
    if len(inside) > most:
        raise WorkflowInvalid(
            f"Node {key!r} would open into {len(inside):,} nodes: at most {most:,}",
            fix="Raise SCHEDULER['WORKFLOW_NODES'], or let each node do more.",
        )


def _values(engine: Engine, run_id: str, node: Node) -> tuple[Any, dict[str, Ended]]:
    """What the group takes from the run and from its parents."""
    sources = {reference.source for part in (node.payload, node.each) for reference in references(part)}
    run_payload = engine.workflows.facts(run_id).payload if RUN in sources else None
    parents = engine.workflows.parents(run_id, sources - {RUN, EACH})
    return run_payload, parents


OPENERS: dict[Kind, Callable[[Relay, str, Handed], None]] = {
    Kind.EACH: open_group,
    Kind.WORKFLOW: open_group,
    Kind.SIGNAL: begin_wait,
    Kind.APPROVAL: begin_wait,
}
"""What is done with a released node that is no job."""
