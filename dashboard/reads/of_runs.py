"""Workflows and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.kept import Kept
from dashboard.reads.whole import asking
from jobs import api
from jobs.api import run_history
from jobs.api.reach import Reach
from jobs.api.run_history import DefinitionView
from jobs.api.workflows import Comparison, RetryPlan, RunPage, Waiting
from jobs.core.workflow import NodeView, RunFacts

WORKFLOWS_EVERY_SECONDS = 5.0
"""So often the history of runs is summed up."""

NODES_AT_ONCE = 1_000
"""So many nodes of a run are read in one round trip."""

_workflows: Kept[list[DefinitionView]] = Kept(WORKFLOWS_EVERY_SECONDS)


def forget() -> None:
    _workflows.forget()


def run(run_id: str) -> RunFacts:
    """One run of a workflow without its nodes, or RunNotFound."""
    with asking():
        return api.workflows.get(run_id)


def run_nodes(run: RunFacts) -> list[NodeView]:
    """All nodes of a run, parents first."""
    nodes: list[NodeView] = []
    with asking():
        while len(nodes) < run.total:
            page = api.workflows.nodes(run.id, nodes[-1].rank + 1 if nodes else 0, NODES_AT_ONCE)
            if not page:
                break
            nodes += page
        return api.shown_nodes(nodes)


def runs(name: str, state: str, cursor: str, limit: int) -> RunPage:
    """Runs, newest first; ``name`` and ``state`` may be empty. OptionInvalid for a cursor that is not one of ours."""
    with asking():
        return api.workflows.list(name=name or None, state=state or None, cursor=cursor or None, limit=limit)


def workflows() -> Sequence[DefinitionView]:
    """Each workflow that is stored or has run lately, with how it has been doing; kept for some seconds."""
    return _workflows.read(lambda: list(run_history.definitions()))


def reach_of_runs(run_ids: Sequence[str]) -> Reach:
    """The pools that nodes of these runs are in, or may come to."""
    with asking():
        return api.reach.together(map(api.reach.of_run, run_ids))


def run_waiting(run_id: str) -> Sequence[Waiting]:
    """The nodes of a run that wait for a signal or a person."""
    with asking():
        return api.workflows.waiting(run_id)


def retry_plan(run_id: str, node: str) -> RetryPlan:
    """What a retry from this node (empty: of what failed) would run again. WrongState where nothing can be."""
    with asking():
        return api.workflows.retry_plan(run_id, node or None)


def comparison(run_id: str, against: str) -> Comparison:
    """The run beside another (empty: the last before it that succeeded). RunNotFound, OptionInvalid: there is none."""
    with asking():
        return api.workflows.compare(run_id, against or None)


def first_failures(run_ids: Sequence[str]) -> Mapping[str, NodeView]:
    """Run → the first of its nodes that failed."""
    with asking():
        found = api.workflows.first_failures(run_ids)
        return dict(zip(found, api.shown_nodes(list(found.values())), strict=True))
