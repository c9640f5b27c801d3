"""Which pools an act comes to touch: whether somebody who may act in only some of them may do it is judged by that.

A ``Reach`` is a set of pools; None stands for every pool there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from jobs.api.producer import pool_of
from jobs.api.workflow_checks import Document, validate
from jobs.api.workflow_nesting import in_full
from jobs.api.workflow_runs import is_name
from jobs.core.schedule.definition import STARTER
from jobs.core.workflow import Definition, Node
from jobs.exceptions import WorkflowInvalid
from jobs.registry import registry

Reach = frozenset[str] | None


def together(reaches: Iterable[Reach]) -> Reach:
    """That of several acts."""
    found: frozenset[str] = frozenset()
    for reach in reaches:
        if reach is None:
            return None
        found |= reach
    return found


def of_enqueue(type: str, pool: str | None = None, *, replaces: bool = False) -> Reach:
    """Of making a job. ``replaces``: it cancels the one that holds its unique key, in whatever pool that waits."""
    return None if replaces else of_job(type, pool_of(type, pool))


def of_job(type: str, pool: str) -> Reach:
    """Of a job of this type in this pool. One that starts workflows may start any of them."""
    return None if type == STARTER else frozenset({pool})


def of_workflow(what: Document) -> Reach:
    """Of a run: the pools of all its nodes, those of sub-workflows too. What cannot be started touches none."""
    stored = import_module("jobs.api.workflow_definitions")  # rows, which only a set-up Django has
    try:
        found = stored.definition(what).definition if is_name(what) else validate(what, allow_unknown=True)
        return _of_nodes(in_full(found))
    except (WorkflowInvalid, stored.WorkflowNotFound):
        return frozenset()


def of_node(node: Node) -> Reach:
    """Of a node that has no job yet, and of all that it may open into. None where only workers know its type."""
    if isinstance(node.workflow, Definition):
        return _of_nodes(node.workflow)
    if not node.type:
        return frozenset()
    return frozenset({node.pool or pool_of(node.type)}) if node.pool or node.type in registry else None


def _of_nodes(definition: Definition) -> Reach:
    return together(map(of_node, definition.nodes))
