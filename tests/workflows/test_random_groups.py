"""Random workflows with groups in them on a real server, retried from a random node: against the oracle."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from jobs.core.states import JobState
from jobs.core.workflow import Definition, Node, Run, Stood
from jobs.engine import Engine
from jobs.engine.workflows import new_run_id
from jobs.runtime import controlling
from tests.core.test_workflow_groups import Wanted, fates_of, random_workflow
from tests.support.graphs import verdict
from tests.support.runs import Runs

ENDS = ["succeeded", "succeeded", "succeeded", "dead", "cancelled"]


def as_node(node: Node, inside: dict[str, list[Node]]) -> Node:
    """A group of the oracle as a sub-workflow with relative keys."""
    if node.key not in inside:
        return node
    nodes = tuple(_relative(as_node(inner, inside), f"{node.key}:") for inner in inside[node.key])
    if not nodes:
        return msgspec.structs.replace(node, each=[])
    return msgspec.structs.replace(node, type="", each=UNSET, workflow=Definition(name="inner", nodes=nodes))


def _relative(node: Node, prefix: str) -> Node:
    fields: dict[str, Any] = {
        field: tuple(key.removeprefix(prefix) for key in getattr(node, field))
        for field in ("depends_on", "on_success", "on_failure", "on_complete")
    }
    return msgspec.structs.replace(node, key=node.key.removeprefix(prefix), **fields)


def keys_of(wanted: Wanted) -> list[str]:
    return [each.key for nodes in (wanted.nodes, *wanted.inside.values()) for each in nodes]


def check(runs: Runs, run: str, wanted: Wanted, outcomes: dict[str, JobState]) -> None:
    fates = fates_of(wanted.nodes, wanted.inside, outcomes)
    left_aside = {view.key for view in runs.nodes(run).values() if view.is_released and view.state == "skipped"}
    states = {key: state for key, state in runs.states(run).items() if key not in left_aside}
    assert states == fates  # members of a group that did not open again after a retry are skipped, whatever they were
    assert runs.facts(run).state == verdict(wanted.nodes, {each.key: fates[each.key] for each in wanted.nodes})


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 25))
def test_groups_end_as_the_oracle_says_and_again_after_a_retry(engine: Engine, seed: int, count: int) -> None:
    random, runs = Random(seed), Runs(engine)
    wanted = random_workflow(random, count)
    outcomes = {key: JobState(random.choice(ENDS)) for key in keys_of(wanted)}
    run = new_run_id()
    nodes = tuple(as_node(each, wanted.inside) for each in wanted.nodes)
    runs.relay.start(run, Definition(name="nested", nodes=nodes), {"payload": {}})

    runs.run_all(lambda key: str(outcomes[key]))
    check(runs, run, wanted, outcomes)

    views = list(engine.workflows.all_nodes(run))
    begin = random.choice([view.key for view in views if view.is_released])
    plan = controlling.retry_plan(engine, run, begin)
    stood = [Stood(view.node, view.scope, view.is_released, JobState(view.state)) for view in views]
    undone = set(Run.restored(stood).redo(begin).undone)
    for key in keys_of(wanted):
        is_inside = any(key.startswith(f"{group}:") for group in (begin, *undone))
        if key in (begin, *plan.again, *undone) or is_inside:
            outcomes[key] = JobState(random.choice(ENDS))
    controlling.retry(runs.relay, run, begin)
    runs.run_all(lambda key: str(outcomes[key]))
    check(runs, run, wanted, outcomes)
