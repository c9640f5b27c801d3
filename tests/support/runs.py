"""Runs of workflows on a real server, with a worker that does what the test says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from jobs.core import workflow
from jobs.core.job import LeasedJob, Route
from jobs.core.workflow import NodeView, RunFacts
from jobs.engine import Completion, Engine, Failure, new_token
from jobs.engine.workflows import new_run_id
from jobs.runtime.relaying import Relay

Outcome = str
"""``succeeded``, ``dead`` or ``cancelled``."""


class Runs:
    """``engine`` with a relay, and a worker of every pool."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.relay = Relay(engine)
        self.ran: list[str] = []  # nodes in the order in which their jobs were leased

    def start(self, *nodes: Mapping[str, Any], payload: Any = None, id: str | None = None) -> str:
        """A run of these nodes, each a JSON node whose type may be left out; its id."""
        definition = workflow.read({"name": "test", "nodes": [{"type": "test.node", **node} for node in nodes]})
        run_id = id or new_run_id()
        self.relay.start(run_id, definition, {"payload": {} if payload is None else payload})
        return run_id

    def lease(self, limit: int = 1000) -> list[LeasedJob]:
        """Everything that is ready."""
        leased: list[LeasedJob] = []
        for route in self.engine.topology.partitions(fresh=True):
            reply = self.engine.leases.lease(route, worker="w", token=new_token(), limit=limit, lease_ms=10_000)
            leased += reply.jobs
        self.ran += [job.extras["node"] for job in leased if "node" in job.extras]
        return leased

    def end(self, job: LeasedJob, outcome: Outcome = "succeeded", *, result: Any = None, tell: bool = True) -> None:
        """Ends an attempt for good; ``tell``: and its run hears of it."""
        if outcome == "succeeded":
            raw = None if result is None else msgspec.json.encode(result)
            completion = Completion(job.id, job.token, job.type, job.leased_at, raw)
            assert self.engine.leases.complete(job.route, [completion]) == ["ok"]
        else:
            assert self.fail(job, outcome) == outcome
        if tell:
            self.tell([job])

    def fail(self, job: LeasedJob, verdict: Any, *, delay_ms: int = 0, message: str = "") -> str:
        """Ends an attempt as a worker does that has decided so; the state that the job is in."""
        message = message or f"{job.extras['node']} failed"
        error = msgspec.json.encode({"type": "ValueError", "message": message, "traceback": ""})
        failure = Failure(job.id, job.token, job.type, job.leased_at, verdict, delay_ms, error=error)
        (state,) = self.engine.leases.fail(job.route, [failure])
        return state

    def end_many(self, jobs: Iterable[LeasedJob], results: Mapping[str, Any]) -> None:
        """Ends attempts together, all of them well."""
        by_route: defaultdict[Route, list[LeasedJob]] = defaultdict(list)
        for job in jobs:
            by_route[job.route].append(job)
        for route, together in by_route.items():
            completions = []
            for job in together:
                node = job.extras["node"]
                raw = msgspec.json.encode(results[node]) if node in results else None
                completions.append(Completion(job.id, job.token, job.type, job.leased_at, raw))
            assert set(self.engine.leases.complete(route, completions)) == {"ok"}
            self.tell(together)

    def tell(self, jobs: Iterable[LeasedJob]) -> None:
        by_route: defaultdict[Route, list[str]] = defaultdict(list)
        for job in jobs:
            by_route[job.route].append(job.id)
        for route, job_ids in by_route.items():
            self.relay.tell(route, job_ids)

    def run_all(self, outcomes: Mapping[str, Outcome] | Callable[[str], Outcome] | None = None, **results: Any) -> None:
        """Leases and ends until nothing is ready."""
        given = outcomes or {}
        outcome_of = given if callable(given) else lambda node: given.get(node, "succeeded")
        while leased := self.lease():
            for job in leased:
                node = job.extras["node"]
                self.end(job, outcome_of(node), result=results.get(node))

    def facts(self, run_id: str) -> RunFacts:
        return self.engine.workflows.facts(run_id)

    def nodes(self, run_id: str) -> dict[str, NodeView]:
        return {view.key: view for view in self.engine.workflows.all_nodes(run_id)}

    def states(self, run_id: str) -> dict[str, str]:
        return {key: view.state for key, view in self.nodes(run_id).items()}
