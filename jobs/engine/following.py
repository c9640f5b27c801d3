"""Seeing jobs change, from outside: what has happened since the last look, at a cost that knows a bound.

No script writes anything for a follower, so that nobody pays for one who is not there. A look reads the lines of the
states: those of ended jobs are in order of time and are read from where the last look stopped; of the others, where
jobs stand in another order, the first and the last few hundred are compared with what stood there before. What stays
unseen in a look: states that a job passed through between two of them, and jobs in the middle of a long line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from jobs.core.job import Job, Route, moment
from jobs.core.states import TERMINAL, JobState
from jobs.engine.batches import batches
from jobs.engine.bundles import BUNDLE_MARK, open_bundles
from jobs.engine.jobs import Jobs
from jobs.engine.listing import JobFilter
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.topology import Topology

LOOK_AT = 200
"""Jobs of one line that one look reads, at most: the newest ended ones, the first and the last of the others."""

REMEMBERED = 20_000
"""Changes that a follower knows it has told."""

LIVE = tuple(state for state in JobState if state not in TERMINAL)
ENDED = tuple(TERMINAL)


class Changes(NamedTuple):
    """``jobs``: as they are now, in the order in which they changed. ``unseen``: how many more have ended."""

    jobs: list[Job]
    unseen: int


class Follower:
    """What matches a filter and changes from now on. Not for several threads at once.

    Raises StoreUnavailable where the server is away; the next look then goes on where the last one ended.
    """

    def __init__(self, store: Store, topology: Topology, jobs: Jobs, filter: JobFilter) -> None:
        self._store = store
        self._topology = topology
        self._jobs = jobs
        self._filter = filter
        self._since = jobs.server_now_ms()
        self._ended_until: dict[str, int] = {}  # line → end of the last job read from it, ms
        self._stood: dict[str, set[tuple[bytes, float]]] = {}  # line → who stood where at its ends
        self._told: dict[tuple[str, str, datetime], None] = {}

    def look(self) -> Changes:
        """What has changed since the look before (the first: since this was made)."""
        routes = self._topology.partitions(self._filter.pool)
        if self._wants(JobState.LEASED):
            open_bundles(self._store, routes)
        until = self._jobs.server_now_ms()
        ids: list[str] = []
        unseen = 0
        for route in routes:
            found, missed = self._look_at(route, until)
            ids += found
            unseen += missed
        jobs = [job for job in self._read(ids) if self._is_news(job)]
        jobs.sort(key=_changed_at)
        return Changes(jobs, unseen)

    def _look_at(self, route: Route, until: int) -> tuple[list[str], int]:
        keys = partition_keys(self._store.namespace, route)
        ended = [keys.index(state) for state in ENDED if self._wants(state)]
        live = [keys.index(state) for state in LIVE if self._wants(state)]

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for line in ended:
                since = self._ended_until.get(line, self._since)
                # Of the present millisecond there may be more to come: it is read the next time.
                pipeline.zrevrangebyscore(line, f"({until}", since, start=0, num=LOOK_AT)
                pipeline.zcount(line, since, f"({until}")
            for line in live:
                pipeline.zrange(line, 0, LOOK_AT - 1, withscores=True)
                pipeline.zrange(line, -LOOK_AT, -1, withscores=True)
            return list(pipeline.execute())

        replies = iter(self._store.read(send))
        ids: list[bytes] = []
        unseen = 0
        for line in ended:
            newest, count = next(replies), next(replies)
            self._ended_until[line] = until
            ids += newest
            unseen += count - len(newest)
        for line in live:
            ids += self._newcomers(line, {*next(replies), *next(replies)})
        return [job_id.decode(errors="replace") for job_id in ids], unseen

    def _newcomers(self, line: str, stand: set[tuple[bytes, float]]) -> Iterator[bytes]:
        stood, self._stood[line] = self._stood.get(line, set()), stand
        if line.endswith(":leased"):  # their score is a deadline, which each renewal moves
            newcomers = {job_id for job_id, _ in stand} - {job_id for job_id, _ in stood}
            return (job_id for job_id in newcomers if not job_id.startswith(BUNDLE_MARK))
        return iter({job_id for job_id, _ in stand - stood})

    def _read(self, ids: Sequence[str]) -> Iterator[Job]:
        for batch in batches(dict.fromkeys(ids), limit=LOOK_AT):
            yield from (job for job in self._jobs.get_many(batch) if job is not None)

    def _wants(self, state: JobState) -> bool:
        return not self._filter.states or state in self._filter.states

    def _is_news(self, job: Job) -> bool:
        """Whether it matches, changed since we began, and was not told as it is now."""
        changed_at = _changed_at(job)
        change = (job.id, job.state.value, changed_at)
        if changed_at < moment(self._since) or change in self._told or not self._filter.matches(job):
            return False
        self._told[change] = None
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]
        return True


def _changed_at(job: Job) -> datetime:
    """When the job came into the state it is in."""
    match job.state:
        case JobState.READY:
            return job.ready_at or job.created_at
        case JobState.LEASED:
            return job.started_at or job.leased_at or job.created_at
        case JobState.SCHEDULED:  # a lease before that: it was snoozed
            return job.leased_at or job.created_at
        case JobState.RETRY_WAIT:
            return max((attempt.finished_at for attempt in job.attempts if attempt.finished_at), default=job.created_at)
        case _:
            return job.finished_at or job.created_at
