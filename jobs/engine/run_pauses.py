"""Pauses of runs, as far as jobs of theirs are there already: the partitions where they are set them aside.

A lease asks its partition, as it does for pauses of pools. What the partitions are told is a copy of what the run says,
with a version; see docs/decisions/0018.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from jobs.core.clock import Clock
from jobs.core.job import Route
from jobs.core.states import JobState
from jobs.core.workflow import NodeView, RunFacts
from jobs.engine.leases import Leases
from jobs.engine.pauses import Pauses
from jobs.engine.workflows import CREATE_MS, Workflows
from jobs.store.codec.ids import route_in
from jobs.store.connection import Store
from jobs.store.keys import RunKeys, partition_keys


class RunJobs(NamedTuple):
    """Where the jobs of a run are. ``live``: those that have not ended."""

    routes: frozenset[Route]
    live: Mapping[Route, list[str]]


class RunPauses:
    """See the module. Raises RunNotFound, and StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock, workflows: Workflows, pauses: Pauses, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self._workflows = workflows
        self._pauses = pauses
        self._leases = leases

    def spread(self, run_id: str) -> bool:
        """Brings all partitions with jobs of the run up to how it stands: of a paused one no lease gives any. False
        where that must be done again, since nodes are still on their way to become jobs.

        May be repeated by anybody.
        """
        not_after = self._workflows.server_now_ms() + CREATE_MS  # before it is read how the run stands
        facts = self._workflows.facts(run_id)
        if is_spread(facts):
            return True
        if facts.paused is not None and self._workflows.step(run_id, take=0).claimed:
            return False
        what: Literal["halt", "go on", "forget"] = "forget" if facts.is_over else "halt" if facts.paused else "go on"
        for route in self._jobs(run_id).routes:
            keys = partition_keys(self._store.namespace, route)
            answer = self._store.run(
                "partition_halt",
                keys,
                given_now=self._now(),
                run=run_id,
                version=facts.halts,
                what=what,
                not_after=not_after,
            )
            if answer == b"late":
                return False
            if what != "halt":
                self._leases.unpark(route, [f"\n{run_id}"])
        self._store.run("workflow_spread", RunKeys(self._store.namespace, run_id), version=facts.halts)
        return True

    def settle(self, run_id: str, *, timeout: float | None = None) -> int:
        """Waits until no job of a paused run that was handed out before can start any more: see ``Pauses.settle``."""
        return self._pauses.settle_jobs(self._jobs(run_id).live, timeout=timeout)

    def _jobs(self, run_id: str) -> RunJobs:
        return _jobs_of(self._workflows.all_nodes(run_id))

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def is_spread(facts: RunFacts) -> bool:
    """Whether all partitions know how the run stands."""
    return not facts.halts if facts.is_over else facts.halts == facts.halts_told


def _jobs_of(views: Iterable[NodeView]) -> RunJobs:
    routes = set()
    live: defaultdict[Route, list[str]] = defaultdict(list)
    for view in views:
        route = route_in(view.job) if view.job else None
        if view.job and route is not None:
            routes.add(route)
            if view.state == JobState.READY:
                live[route].append(view.job)
    return RunJobs(frozenset(routes), live)
