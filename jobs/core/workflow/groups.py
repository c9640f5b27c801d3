"""Nodes that open into others: one for each item of a list, or the nodes of a sub-workflow.

Members are nodes like all others, called ``group:0`` or ``group:key``, and know nothing of where they came from: what
their payloads say of the list and of the sub-workflow's own payload is filled in when the group opens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from jobs.core.parents import Ended
from jobs.core.wording import shown
from jobs.core.workflow import templates
from jobs.core.workflow.definition import EDGES, Definition, Node
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
