"""``python -m benchmarks workflows``: how soon a node follows its parents, and what a run costs beside plain jobs.

Times are those that the server wrote down: ends of parents, releases and starts of children. The runs are started here
and run by one worker host.
"""

from __future__ import annotations

import os
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.hosts import Host, project_environment, wait_until
from benchmarks.report import Bar, Figure, conditions, progress, show
from benchmarks.server import BenchmarkServer

if TYPE_CHECKING:
    from jobs import Workflow
    from jobs.core.workflow import NodeView

PACKAGES = ("Django", "redis", "hiredis", "msgspec")
WITHIN_SECONDS = 600.0


class Size(NamedTuple):
    rounds: int
    fan: int
    """Nodes of the fan: all but the last are parents of the last."""
    chain: int
    graph: int
    """Nodes of the run whose memory is counted."""


FULL = Size(rounds=5, fan=10_000, chain=200, graph=1_000)
SHORT = Size(rounds=1, fan=10_000, chain=50, graph=1_000)


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Measures and prints everything; true when every bar holds."""
    size = SHORT if short else FULL
    with BenchmarkServer(persistent=persistent) as server:
        os.environ.update(project_environment(server.url, server.folder))
        import django

        django.setup()
        figures = _measure(server, size)
        facts = conditions(server.client, PACKAGES)
        facts["rounds"] = f"{size.rounds} of a fan of {size.fan:,} and a chain of {size.chain}"
        return show("Workflows beside plain jobs", facts, figures, reference="plain jobs", as_json=as_json)


def _measure(server: BenchmarkServer, size: Size) -> list[Figure]:
    from benchmarks.workload.jobs import POOL
    from jobs.engine import get_engine

    for pool in (POOL, "default"):
        get_engine().topology.ensure(pool)
    memory = Figure(f"memory of an ended node, of {size.graph:,}", "bytes", Bar(1024, of="value", at_most=True))
    soon = Bar(1_000, of="value", at_most=True)
    join = Figure(f"last of {size.fan - 1:,} parents ended to child started", "ms", soon)
    ended = Figure("the same, to child released", "ms", soon)
    follows = Figure("one parent ended to child started", "ms")
    speed = Figure("nodes of the fan, first start to last end", "a second")
    with Host(server.url, server.folder, "--concurrency", "10"):
        _run(_graph(size.graph))
        memory.add(_bytes(server) / size.graph)
        for turn in range(size.rounds):
            progress(f"round {turn + 1}")
            *parents, child = _run(_fan(size.fan))
            last_end = max(view.ended_at_ms for view in parents)
            join.add(child.started_at_ms - last_end)
            ended.add(child.released_at_ms - last_end)
            first_start = min(view.started_at_ms for view in parents)
            speed.add(1_000 * size.fan / (child.ended_at_ms - first_start), _plain_jobs_a_second(size.fan))
            line = _run(_chain(size.chain))
            follows.add(median(after.started_at_ms - before.ended_at_ms for before, after in pairwise(line)))
    return [join, ended, follows, speed, memory]


def _run(flow: Workflow) -> list[NodeView]:
    """The nodes of a run of it that has succeeded, parents first, each of which ran once."""
    from jobs import workflows
    from jobs.engine import get_engine

    started = workflows.start(flow)
    facts = workflows.wait(started.id, WITHIN_SECONDS)
    views = list(get_engine().workflows.all_nodes(started.id))
    if facts.state != "succeeded" or any(view.attempts != 1 for view in views):
        raise SystemExit(f"A run of {flow.name} {facts.state}, or nodes of it ran more than once.")
    return views


def _fan(size: int) -> Workflow:
    from benchmarks.workload.jobs import nothing
    from jobs import Workflow

    flow = Workflow("fan")
    flow.add("join", nothing, depends_on=[flow.add(f"n{number}", nothing) for number in range(size - 1)])
    return flow


def _chain(size: int) -> Workflow:
    from benchmarks.workload.jobs import nothing
    from jobs import Workflow

    flow = Workflow("chain")
    last: list[Any] = []
    for number in range(size):
        last = [flow.add(f"n{number}", nothing, depends_on=last)]
    return flow


def _graph(size: int) -> Workflow:
    """Each node has one or two parents, a small payload and a small result."""
    from benchmarks.workload.jobs import count
    from jobs import Workflow

    flow = Workflow("graph")
    steps = [flow.add("node-0", count, {"number": 0})]
    for number in range(1, size):
        parents = [steps[parent] for parent in {number // 2, number // 3} if parent < number]
        steps.append(flow.add(f"node-{number}", count, {"number": number}, depends_on=parents))
    return flow


def _bytes(server: BenchmarkServer) -> int:
    """Of all keys of runs and of their jobs; what workers leave for themselves is no part of it."""
    from jobs.engine import get_engine

    client: Any = server.client
    found = [key for of in ("wf.", "default.") for key in client.scan_iter(f"{get_engine().store.namespace}:{{{of}*")]
    return sum(client.memory_usage(key, samples=0) for key in found if not key.endswith(b":grants"))


def _plain_jobs_a_second(count: int) -> float:
    """The same jobs without a run: all stand in line before the first is leased."""
    from benchmarks.workload.jobs import POOL, nothing
    from jobs.core.pause import Scope
    from jobs.engine import get_engine

    engine, scope = get_engine(), Scope("pool", POOL)
    jobs: list[Any] = []

    def have_ended() -> bool:
        jobs[:] = engine.jobs.get_many(handle.id for handle in handles)
        return all(job.is_terminal for job in jobs)

    engine.pauses.pause(scope, by="benchmark")
    handles = nothing.enqueue_many([{}] * count)
    engine.pauses.resume(scope)
    wait_until(lambda: engine.jobs.get(handles[-1].id).is_terminal, WITHIN_SECONDS)
    wait_until(have_ended, WITHIN_SECONDS, every=0.2)
    first, last = min(job.started_at for job in jobs), max(job.finished_at for job in jobs)
    return count / float((last - first).total_seconds())
