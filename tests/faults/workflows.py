"""The fault run of workflows: hosts are killed, stopped and frozen in the midst of a large run of a random graph.

Judged by what there is in the end: each node has ended as the oracle says, has one job or none, and none was released
before as many parents had ended as it wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.core.workflow import Definition, Node, NodeView
from jobs.engine import JobFilter
from jobs.runtime.relaying import Relay
from tests.faults import history, nemesis
from tests.faults.checker.report import Report, Violation
from tests.faults.nemesis import Every, harm
from tests.faults.stage import Stage, stage
from tests.support.graphs import DEAD, SKIPPED, SUCCEEDED, holds, oracle, random_nodes, verdict, wanted_of

if TYPE_CHECKING:
    from tests.faults.scenarios import Profile

RUN = "under-faults"
FAILING = 60
"""One node in so many fails for good."""

QUICK_SECONDS = 0.05


class Slow(NamedTuple):
    """One node in so many takes so many seconds: it is known to have begun when its host is killed."""

    one_in: int
    seconds: float


SLOW = {"long": Slow(8, 1.5), "short": Slow(20, 0.6)}


def workflows(folder: Path, profile: Profile) -> Report:
    """5,000 nodes (600 in short), while hosts are killed and frozen for longer than their leases."""
    is_long = profile.name == "long"
    nodes, outcomes = _graph(5_000 if is_long else 600, SLOW[profile.name])
    with stage(folder) as run:
        for _ in range(3):
            run.start_host(slots=10 if is_long else 2)
        Relay(run.engine).start(RUN, Definition(name="faults", nodes=tuple(nodes)), {"payload": {}})
        harm(
            run,
            {
                "kill host": Every(1.5 if is_long else 0.5, nemesis.kill_host, at_most=60 if is_long else 3),
                "freeze host": Every(
                    0.5 if not is_long else 5.0, nemesis.freeze_host(leases=2), at_most=30 if is_long else 1
                ),
                "terminate host": Every(4.0, nemesis.terminate_host, at_most=30 if is_long else 1),
            },
            while_=lambda: not _is_over(run),
            within=profile.seconds * 10 + 120,
        )
        for host in run.hosts:
            host.stop()
        crashes = sum(job.crashes for job in _jobs(run))
        report = Report(violations=[*_violations(run, nodes, outcomes), *_too_easy(run)])
        if is_long and not crashes:
            report.violations.append(Violation("run", "attempts that crashed", "no host died while it ran a node"))
        facts = run.engine.workflows.facts(RUN)
        report.numbers = {"nodes": float(facts.total), "seconds": facts.seconds or 0.0}
        report.numbers |= {f"nodes {word}": float(count) for word, count in facts.counts.items() if count}
        report.numbers["attempts that crashed"] = float(crashes)
        return report


def _graph(count: int, slow: Slow) -> tuple[list[Node], dict[str, JobState]]:
    random = Random(count)

    def payload() -> dict[str, Any]:
        seconds = slow.seconds if random.random() < 1 / slow.one_in else QUICK_SECONDS
        return {"fails": random.random() < 1 / FAILING, "seconds": seconds}

    nodes = [
        msgspec.structs.replace(node, type="fault.node", payload=payload()) for node in random_nodes(random, count)
    ]
    return nodes, {node.key: DEAD if node.payload["fails"] else SUCCEEDED for node in nodes}


def _is_over(run: Stage) -> bool:
    return run.engine.workflows.facts(RUN).is_over


def _jobs(run: Stage) -> Iterator[Job]:
    cursor = None
    while True:
        page = run.engine.jobs.page(JobFilter(type="fault.node"), cursor=cursor, limit=1000)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _violations(run: Stage, nodes: list[Node], outcomes: dict[str, JobState]) -> Iterator[Violation]:
    fates = oracle(nodes, outcomes)
    views = {view.key: view for view in run.engine.workflows.all_nodes(RUN)}
    jobs = Counter(job.node for job in _jobs(run))
    for node in nodes:
        view, fate = views[node.key], fates[node.key]
        if view.state != fate:
            yield Violation("W1", node.key, f"it is {view.state}, and should be {fate}")
        if jobs[node.key] != (fate is not SKIPPED):
            yield Violation("W2", node.key, f"it has {jobs[node.key]} jobs and is {fate}")
        if fate is not SKIPPED and _is_early(node, views):
            yield Violation("W3", node.key, "it was released before its parents had ended")
    state = run.engine.workflows.facts(RUN).state
    if state != verdict(nodes, fates):
        yield Violation("W4", RUN, f"the run is {state}, and should be {verdict(nodes, fates)}")


def _too_easy(run: Stage) -> Iterator[Violation]:
    """A run that met no fault has tested nothing."""
    taken = {event.fault for event in history.read(run.histories) if event.event == "fault" and event.phase == "ok"}
    for fault in ("kill host", "freeze host"):
        if fault not in taken:
            yield Violation("run", fault, "the fault never took effect")


def _is_early(node: Node, views: dict[str, NodeView]) -> bool:
    released_at = views[node.key].released_at_ms
    satisfied = sum(
        holds(edge, JobState(views[parent].state)) and views[parent].ended_at_ms <= released_at
        for parent, edge in node.edges()
    )
    return satisfied < wanted_of(node)
