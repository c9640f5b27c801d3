"""The verbs of people and producers: creating jobs, looking at them, and deciding over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import Enqueued, Job, JobSpec
from jobs.core.states import JobState
from jobs.engine.caps import Pending
from jobs.engine.holders import forget_id
from jobs.engine.jobs.creation import Creation
from jobs.engine.jobs.stored import StoredJobs
from jobs.engine.jobs.unique_keys import UniqueKeys
from jobs.engine.listing import SCAN_LIMIT, JobFilter, Page, list_jobs
from jobs.engine.news import News
from jobs.engine.redaction import Visible
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable
from jobs.store.codec.ids import route_in
from jobs.store.connection import Store
from jobs.store.topology import Topology


class Jobs(StoredJobs):
    """See the module. Every verb raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        topology: Topology,
        news: News,
        pending: Pending,
        visible: Visible,
    ) -> None:
        super().__init__(store, clock, topology)
        self._news = news
        self._visible = visible
        self.unique_keys = UniqueKeys(store, self)
        self.creation = Creation(store, settings, topology, pending, self, self.unique_keys)

    # --- creating -------------------------------------------------------------------------------------------------

    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], *, ids: Sequence[str] | None = None) -> list[Enqueued]:
        """Creates one job per payload (JSON objects). A caller's id or a unique key goes with exactly one payload.

        Raises PayloadTooLarge, DuplicateJob, OptionInvalid, PoolFull. Of several payloads either all are refused for
        their size or for want of room, or none; after OutcomeUnknown in a later batch of 1,000 the earlier ones exist,
        and those behind it may. So it is where others have filled the pool meanwhile.
        ``ids``: from ``new_ids`` for the same pool, one per payload, for callers that must know them before.
        """
        return self.creation.enqueue(spec, payloads, ids)

    def new_ids(self, pool: str, count: int) -> list[str]:
        """Ids for jobs of this pool that are to be created later."""
        return self.creation.new_ids(pool, count)

    # --- looking at many ------------------------------------------------------------------------------------------

    def page(
        self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50, look_at: int = SCAN_LIMIT
    ) -> Page:
        """One page of the jobs that match, state by state; see ``list_jobs``. OptionInvalid: no cursor of ours."""
        return list_jobs(
            self._store,
            self._topology.partitions(filter.pool if filter else None),
            self.read,
            filter or JobFilter(),
            cursor,
            limit,
            self._visible,
            look_at,
        )

    def count_ended(self, states: Iterable[JobState], *, pool: str | None = None, until: datetime | None = None) -> int:
        """How many jobs ended in these states, at or before ``until``. Costs the same however many there are."""
        newest = "+inf" if until is None else int(until.timestamp() * 1000)
        lines = [self.keys(route).index(state) for route in self._topology.partitions(pool) for state in states]

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for line in lines:
                pipeline.zcount(line, "-inf", newest)
            return list(pipeline.execute())

        return sum(self._store.read(send)) if lines else 0

    # --- deciding -------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> Job:
        """Stops a waiting job at once, and asks for the end of a leased one. JobNotFound, WrongState if it ended
        before."""
        self.decide("job_cancel", job_id, only_waiting="")
        job = self.get(job_id)
        if job.state == JobState.LEASED:
            self._hurry_its_host(job_id)
        return job

    def cancel_waiting(self, job_id: str) -> None:
        """Stops a job only if it has not begun. JobNotFound, WrongState."""
        self.decide("job_cancel", job_id, only_waiting="1")

    def _hurry_its_host(self, job_id: str) -> None:
        """It finds the mark when it renews the lease; the news makes it look now."""
        with suppress(StoreUnavailable, OutcomeUnknown):
            self._news.tell("cancel", job_id)

    def run_now(self, job_id: str) -> Job:
        """Makes a job that waits for a time ready. JobNotFound, WrongState."""
        self.decide("job_run_now", job_id)
        return self.get(job_id)

    def prioritize_many(self, job_ids: Iterable[str], priority: int) -> dict[str, SchedulerError | None]:
        """Gives each waiting job another priority; what went wrong by id, None where nothing did. One that a limit of
        its type holds back keeps its turn."""
        return self.decide_many("job_prioritize", list(job_ids), priority=priority)

    def resubmit(self, job_id: str, payload: bytes | None = None) -> Job:
        """Makes a dead or cancelled job live again, with fresh budgets and, if given, a new payload.

        JobNotFound, WrongState; DuplicateJob where another live job holds its unique key by now.
        """
        if payload is not None:
            self.creation.refuse_large([payload])
        problem = self._resubmit([job_id], payload)[job_id]
        if problem is not None:
            raise problem
        return self.get(job_id)

    def resubmit_many(
        self, job_ids: Iterable[str], *, ended_by_ms: int | None = None
    ) -> dict[str, SchedulerError | None]:
        """Resubmits each; what went wrong by id, None where nothing did. ``ended_by_ms``: one that ended later is left
        alone, so that asking twice never resubmits twice."""
        return self._resubmit(list(job_ids), None, ended_by_ms)

    def _resubmit(
        self, job_ids: list[str], payload: bytes | None, ended_by_ms: int | None = None
    ) -> dict[str, SchedulerError | None]:
        keyed, refused = self.unique_keys.reclaim(job_ids)
        allowed = [job_id for job_id in job_ids if job_id not in refused]
        decided = self.decide_many(
            "job_resubmit",
            allowed,
            given_now=self.now(),
            payload=b"" if payload is None else payload,
            ended_by="" if ended_by_ms is None else ended_by_ms,
        )
        # Also those that lived when we looked: they may have been cancelled since, and live again by us.
        revived = [job_id for job_id in keyed if job_id not in refused and decided[job_id] is None]
        lost = self.unique_keys.confirm(revived)
        return refused | decided | lost

    def discard(self, job_id: str) -> None:
        """Removes an ended job for good. JobNotFound, WrongState while it is live."""
        problem = self.discard_many([job_id])[job_id]
        if problem is not None:
            raise problem

    def discard_many(
        self, job_ids: Iterable[str], *, ended_by_ms: int | None = None
    ) -> dict[str, SchedulerError | None]:
        """Removes each; what went wrong by id, None where nothing did. ``ended_by_ms``: one that ended later stays."""
        ids = list(job_ids)
        callers = {job_id: self.route_of(job_id) for job_id in ids if route_in(job_id) is None}
        outcome = self.decide_many("job_discard", ids, ended_by="" if ended_by_ms is None else ended_by_ms)
        for job_id, route in callers.items():
            if outcome[job_id] is None and route is not None:
                forget_id(self._store, route, job_id, self.now())
        return outcome
