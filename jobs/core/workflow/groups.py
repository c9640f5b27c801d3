"""Nodes that open into others: one for each item of a list, or the nodes of a sub-workflow.

Members are nodes like all others, called ``group:0`` or ``group:key``, and know nothing of where they came from: what
their payloads say of the list and of the sub-workflow's own payload is filled in when the group opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from jobs.core.parents import Ended
from jobs.core.wording import shown
from jobs.core.workflow import templates
from jobs.core.workflow.definition import EDGES, Definition, Node
from jobs.core.workflow.problems import Problem, invalid
from jobs.core.workflow.templates import Item, TemplateError


def items_of(node: Node, run_payload: Any, parents: Mapping[str, Ended]) -> list[Any]:
    """The list that the node is run for. TemplateError where it is none, or not there."""
    found = templates.value(node.each, run_payload, parents)
    if isinstance(found, list):
        return found
    raise TemplateError(f"Node {node.key!r} is to be run for each of {shown(found)}", "That must be a list.")


def members(node: Node, run_payload: Any, parents: Mapping[str, Ended]) -> Iterator[Node]:
    """What a released group opens into. TemplateError for a value that is not there."""
    if node.each is not UNSET:
        yield from _one_for_each(node, run_payload, parents)
        return
    if not isinstance(node.workflow, Definition):
        raise TemplateError(f"The sub-workflow {node.workflow!r} of node {node.key!r} was not looked up at the start")
    payload = templates.render(node.payload, run_payload, parents)
    for inner in node.workflow.nodes:
        yield _moved(inner, node.key, payload)


def stored_names(definition: Definition) -> Iterator[str]:
    """Names of the stored workflows that it runs as nodes."""
    for node in definition.nodes:
        if isinstance(node.workflow, str):
            yield node.workflow
        elif node.workflow is not None:
            yield from stored_names(node.workflow)


def in_full(definition: Definition, look_up: Callable[[str], Definition], inside: tuple[str, ...] = ()) -> Definition:
    """The same with stored workflows in place of their names, and so on in those.

    Raises WorkflowInvalid for one that would run in itself, and what ``look_up`` raises.
    """
    return msgspec.structs.replace(
        definition, nodes=tuple(_node_in_full(node, look_up, inside) for node in definition.nodes)
    )


def _node_in_full(node: Node, look_up: Callable[[str], Definition], inside: tuple[str, ...]) -> Node:
    if node.workflow is None:
        return node
    name = node.workflow if isinstance(node.workflow, str) else None
    if name in inside:
        chain = " → ".join((*inside, name))
        raise invalid(Problem((node.key,), f"Node {node.key!r} runs {name!r} in itself: {chain}", "Break the circle."))
    found = look_up(name) if name is not None else node.workflow
    assert isinstance(found, Definition)
    within = (*inside, name) if name is not None else inside
    return msgspec.structs.replace(node, workflow=in_full(found, look_up, within))


def _one_for_each(node: Node, run_payload: Any, parents: Mapping[str, Ended]) -> Iterator[Node]:
    alone: dict[str, Any] = {"each": UNSET, "join": "all", "always": False, **dict.fromkeys(EDGES, ())}
    for index, item in enumerate(items_of(node, run_payload, parents)):
        payload = templates.render(node.payload, run_payload, parents, Item(item, index))
        yield msgspec.structs.replace(node, key=f"{node.key}:{index}", payload=templates.as_literal(payload), **alone)


def _moved(inner: Node, group: str, payload: Any) -> Node:
    edges = {field: tuple(f"{group}:{parent}" for parent in getattr(inner, field)) for field in EDGES}
    each = inner.each if inner.each is UNSET else templates.moved_into(inner.each, group, payload)
    return msgspec.structs.replace(
        inner,
        key=f"{group}:{inner.key}",
        payload=templates.moved_into(inner.payload, group, payload),
        each=each,
        **edges,
    )
