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
from jobs.engine import get_engine
from jobs.exceptions import RunNotFound, WorkflowInvalid
from jobs.registry import registry

Reach = frozenset[str] | None

MOST_ASKED = 1_000
"""Jobs of a run that are asked for their pool; a larger run counts as one that reaches every pool."""


def within(closed: frozenset[str], reach: Reach) -> frozenset[str]:
    """Which of the pools that are closed to somebody an act touches."""
    return closed if reach is None else closed & reach


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


def of_run(run_id: str) -> Reach:
    """Of a run: the pools of its nodes. None where a node may come to run in any pool; none of a run that is gone."""
    try:
        views = list(get_engine().workflows.all_nodes(run_id))
    except RunNotFound:
        return frozenset()
    asked = [view.job for view in views if view.job and not view.node.pool]
    unknown = any(view.node.type and not view.job and not view.node.pool for view in views)
    if unknown or len(asked) > MOST_ASKED:
        return None
    jobs = get_engine().jobs.get_many(asked) if asked else []
    own = {job.pool for job in jobs if job is not None} | {view.node.pool for view in views if view.node.pool}
    groups = (of_node(view.node) for view in views if view.node.workflow is not None)
    return together([frozenset(own), *groups])


def of_node(node: Node) -> Reach:
    """Of a node that has no job yet, and of all that it may open into. None where only workers know its type."""
    if isinstance(node.workflow, Definition):
        return _of_nodes(node.workflow)
    if not node.type:
        return frozenset()
    return frozenset({node.pool or pool_of(node.type)}) if node.pool or node.type in registry else None


def _of_nodes(definition: Definition) -> Reach:
    return together(map(of_node, definition.nodes))
