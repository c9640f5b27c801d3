"""Jobs by their ids: where they are, how they stand, and one script over them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from jobs.core.clock import Clock
from jobs.core.job import Job, Route
from jobs.engine.batches import READ_BATCH, READS_AT_ONCE, batches
from jobs.engine.holders import void_id
from jobs.engine.jobs.ids import can_be_id
from jobs.engine.jobs.refusals import not_found, problem, wrong_state
from jobs.exceptions import JobNotFound, SchedulerError, WrongState
from jobs.store.codec.ids import route_in
from jobs.store.codec.jobs import RawJob, decode_job
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.scripts import Call
from jobs.store.topology import Topology

_HALF_DONE_SECONDS = 0.05


class StoredJobs:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, topology: Topology) -> None:
        self._store = store
        self._clock = clock
        self._topology = topology

    # --- looking --------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        """The job as it is now. JobNotFound."""
        job = self.find(job_id)
        if job is None:
            raise not_found(job_id)
        return job

    def find(self, job_id: str) -> Job | None:
        """The job as it is now, None where there is none."""
        return self.get_many([job_id])[0]

    def get_many(self, job_ids: Iterable[str]) -> list[Job | None]:
        """The jobs in the order of the ids, None for those that are not there."""
        wanted = list(job_ids)
        found: dict[str, Job | None] = {}
        for parts in batches(self.parts(self.by_route(wanted)), limit=READS_AT_ONCE):
            for (_, ids), jobs in zip(parts, self.read(parts), strict=True):
                found.update(zip(ids, jobs, strict=True))
        return [found.get(job_id) for job_id in wanted]

    @staticmethod
    def parts(by_route: Iterable[tuple[Route, Sequence[str]]]) -> list[tuple[Route, Sequence[str]]]:
        """The same in parts that one call may read."""
        return [(route, part) for route, ids in by_route for part in batches(ids, limit=READ_BATCH)]

    def read(self, parts: Sequence[tuple[Route, Sequence[str]]]) -> list[list[Job | None]]:
        """Jobs of some partitions in one round trip; at most ``READ_BATCH`` ids in each part."""
        replies = self._store.run_each("job_read", [Call(self.keys(route), {}, ids) for route, ids in parts])
        return [
            [decode_job(route, job_id, RawJob(*raw)) for job_id, raw in zip(ids, reply, strict=True)]
            for (route, ids), reply in zip(parts, replies, strict=True)
        ]

    def settled(self, job_id: str) -> Job | None:
        """The job; where it is not there yet, another look after the moment that its enqueue may take."""
        job = self.find(job_id)
        if job is None:
            time.sleep(_HALF_DONE_SECONDS)
            job = self.find(job_id)
        return job

    # --- one script over them -------------------------------------------------------------------------------------

    def decide(self, script: str, job_id: str, **arguments: Any) -> None:
        """JobNotFound, WrongState."""
        route = self.route_of(job_id)
        if route is None:
            raise not_found(job_id)
        try:
            self._store.run(script, self.keys(route), resend=False, given_now=self.now(), id=job_id, **arguments)
        except JobNotFound:
            raise not_found(job_id) from None
        except WrongState as error:
            raise wrong_state(job_id, error.state) from None

    def decide_many(self, script: str, job_ids: list[str], **arguments: Any) -> dict[str, SchedulerError | None]:
        """What went wrong by id, None where nothing did."""
        outcome: dict[str, SchedulerError | None] = {job_id: not_found(job_id) for job_id in job_ids}
        for route, ids in self.by_route(job_ids):
            for batch in batches(ids, limit=READ_BATCH):
                answers = self._store.run(script, self.keys(route), batch, resend=False, **arguments)
                for job_id, answer in zip(batch, answers, strict=True):
                    outcome[job_id] = problem(job_id, answer.decode())
        return outcome

    def void(self, job_id: str) -> bool:
        """Makes sure that this id never becomes a job; False where it is one already."""
        route = self.route_of(job_id)
        return route is None or self.void_at(route, job_id)

    def void_at(self, route: Route, job_id: str) -> bool:
        """The same where its route is known."""
        return void_id(self._store, route, job_id, self.now())

    # --- routes and time ------------------------------------------------------------------------------------------

    def route_of(self, job_id: str) -> Route | None:
        """Where the job is, if anywhere; None where it cannot be."""
        route = route_in(job_id)
        if route is not None:
            return route if self._topology.exists(route) else None
        return self._topology.claimed_route(job_id) if can_be_id(job_id) else None

    def by_route(self, job_ids: Iterable[str]) -> list[tuple[Route, list[str]]]:
        """The ids by where their jobs live; those that lead nowhere are left out."""
        routed = [(route, job_id) for job_id in dict.fromkeys(job_ids) if (route := self.route_of(job_id)) is not None]
        routed.sort(key=lambda pair: pair[0])
        return [(route, [job_id for _, job_id in pairs]) for route, pairs in groupby(routed, key=lambda pair: pair[0])]

    def keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)

    def now(self) -> Any:
        """The time as scripts take it: empty where the server's own counts."""
        now = self._clock.now_ms()
        return "" if now is None else now

    def server_now_ms(self) -> int:
        """The time by which jobs are due."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now
