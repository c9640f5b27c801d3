"""Large runs: what they cost, and what is left of them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from jobs import Workflow, workflows
from jobs.core.job import LeasedJob
from jobs.core.workflow import Node
from jobs.engine import Completion, Engine
from jobs.exceptions import WorkflowInvalid
from jobs.services.pruner import Pruner
from tests.support.clock import ManualClock
from tests.support.runs import Runs
from tests.support.wait import soon

BATCH = 1000


def complete(runs: Runs, jobs: list[LeasedJob], result: bytes | None = None) -> None:
    """Ends them, many at a time, and tells their runs."""
    for at in range(0, len(jobs), BATCH):
        some = jobs[at : at + BATCH]
        ends = [Completion(job.id, job.token, job.type, job.leased_at, result) for job in some]
        assert set(runs.engine.leases.complete(some[0].route, ends)) == {"ok"}
        runs.tell(some)


def lease_all(runs: Runs) -> Iterator[LeasedJob]:
    while leased := runs.lease(limit=BATCH):
        yield from leased


def test_a_join_of_ten_thousand_parents_is_released_once_when_the_last_has_ended(runs: Runs) -> None:
    parents = [{"key": f"p{number}"} for number in range(9_999)]
    run = runs.start(*parents, {"key": "all", "depends_on": [node["key"] for node in parents]})
    *firsts, last = lease_all(runs)
    complete(runs, firsts)
    assert runs.lease() == []

    begun = time.monotonic()
    runs.end(last)

    assert [job.extras["node"] for job in runs.lease()] == ["all"]
    assert time.monotonic() - begun < soon(1)
    assert max(Counter(runs.ran).values()) == 1
    assert len(runs.ran) == runs.facts(run).total == 10_000


def test_a_finished_run_of_a_thousand_nodes_takes_at_most_a_kilobyte_a_node(engine: Engine, runs: Runs) -> None:
    nodes: list[dict[str, Any]] = [{"key": f"node-{number}", "payload": {"n": number}} for number in range(1_000)]
    for number, node in enumerate(nodes[1:], start=1):
        node["depends_on"] = [f"node-{parent}" for parent in {number // 2, number // 3} if parent < number]
    run = runs.start(*nodes)
    while leased := runs.lease():
        complete(runs, leased, b'{"rows":12345}')
    assert runs.facts(run).state == "succeeded"

    assert memory(engine) / 1_000 <= 1_024


def memory(engine: Engine) -> int:
    """Bytes of all keys of the run and of its jobs; what workers leave for themselves is no part of it."""
    client: Any = engine.store.client
    found = [key for of in ("wf.", "default.") for key in client.scan_iter(f"{engine.store.namespace}:{{{of}*")]
    return sum(client.memory_usage(key, samples=0) for key in found if not key.endswith(b":grants"))


def test_a_run_is_forgotten_with_all_its_keys_when_its_retention_is_over(
    engine: Engine, runs: Runs, clock: ManualClock
) -> None:
    run = runs.start(
        {"key": "a"}, {"key": "b"}, {"key": "c", "depends_on": ["a", "b"]}, {"key": "d", "on_failure": ["a"]}
    )
    runs.run_all({"b": "dead"}, a=1)
    other = runs.start({"key": "a"})
    kept = engine.settings.retention_seconds

    clock.advance(kept - 1)
    assert Pruner(engine).tick()["runs"] == 0
    clock.advance(2)
    assert Pruner(engine).tick()["runs"] == 1

    assert engine.workflows.find(run) is None
    assert [found for found, _ in engine.workflows.newest()] == [other]
    assert list(engine.store.client.scan_iter(f"*{run}*")) == []


def test_more_nodes_than_are_allowed_are_refused(runs: Runs) -> None:
    flow = Workflow("large")
    for number in range(10_001):
        flow.add(f"n{number}", "t")

    with pytest.raises(WorkflowInvalid, match="10,001 nodes are too many: at most 10,000"):
        workflows.start(flow, allow_unknown=True)


def test_nodes_that_are_added_around_the_end_of_their_parent_run_once_and_never_before_it(runs: Runs) -> None:
    """2,000 children of 20 parents, each 0 to 20 ms before or after the parent has ended."""
    parents = [f"p{number}" for number in range(20)]
    run = runs.start({"key": "keeper"}, *({"key": key} for key in parents))
    leased = {job.extras["node"]: job for job in runs.lease()}
    begun = time.monotonic() + 0.05
    ends_at = {key: begun + 0.1 * number for number, key in enumerate(parents)}
    ended: set[str] = set()
    early: list[str] = []
    additions = [(f"{parent}-{number}", parent) for parent in parents for number in range(20)]  # of five children each
    errors: list[BaseException] = []

    def end_parents() -> None:
        for key in parents:
            time.sleep(max(0.0, ends_at[key] - time.monotonic()))
            ended.add(key)
            runs.end(leased[key])

    def add(some: list[tuple[str, str]]) -> None:
        for key, parent in some:
            moment = ends_at[parent] + random.uniform(-0.02, 0.02)
            time.sleep(max(0.0, moment - time.monotonic()))
            new = [Node(key=f"{key}-{number}", type="test.node", depends_on=(parent,)) for number in range(5)]
            runs.engine.workflows.add(run, new)
            runs.relay.pursue(run)

    def work() -> None:
        while len(runs.ran) < 2_021 and time.monotonic() < begun + 60:
            some = runs.lease()
            early.extend(node for job in some if (node := job.extras["node"]).partition("-")[0] not in ended)
            complete(runs, some)
            time.sleep(0.01)  # else the others have no turn

    threads = [threading.Thread(target=guarded(end_parents, errors)), threading.Thread(target=guarded(work, errors))]
    threads += [threading.Thread(target=guarded(add, errors), args=(additions[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    runs.end(leased["keeper"])

    assert errors == []
    assert early == []
    children = [f"{key}-{number}" for key, _ in additions for number in range(5)]
    assert Counter(runs.ran) == Counter(["keeper", *parents, *children])
    assert runs.facts(run).state == "succeeded"


def guarded(act: Any, errors: list[BaseException]) -> Any:
    def run(*arguments: Any) -> None:
        try:
            act(*arguments)
        except BaseException as error:
            errors.append(error)

    return run
