"""What is done with a released node that is no job: a group opens into its members, a node that waits begins to.

Each of it may be repeated: keys of members are fixed, and what is there already stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobs.core.workflow import Ended, Kind, Node, members, references
from jobs.core.workflow.definition import EACH, RUN
from jobs.engine import Engine
from jobs.engine.run_nodes import Handed, in_order
from jobs.exceptions import WorkflowInvalid

LONGEST_KEY = 250
"""Of a group, in characters: what the store has room for."""


def open_group(engine: Engine, run_id: str, group: Handed) -> None:
    """Adds the members of a released group. WorkflowInvalid, TemplateError: it cannot be opened."""
    key = group.node.key
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


def begin_wait(engine: Engine, run_id: str, one: Handed) -> None:
    """A released node waits for a signal or a person from now on; when its time is over is written down before."""
    set_limit(engine, run_id, one.node, one.released_at)
    engine.run_control.wait(run_id, one.rank, one.node.signal or "")


def set_limit(engine: Engine, run_id: str, node: Node, since_ms: int) -> None:
    """Writes down when the time of a group, or of what waits, is over; ``since_ms``: it counts from there."""
    if node.kind is not Kind.EACH and node.limit is not None:
        engine.run_control.set_deadline(run_id, since_ms + round(node.limit * 1000), node.key)


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


OPENERS: dict[Kind, Callable[[Engine, str, Handed], None]] = {
    Kind.EACH: open_group,
    Kind.WORKFLOW: open_group,
    Kind.SIGNAL: begin_wait,
    Kind.APPROVAL: begin_wait,
}
"""What is done with a released node that is no job."""
