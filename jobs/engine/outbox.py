"""What runs have not heard of their nodes: in the slot of the job, where the script that ended it has left it.

An entry stays until the run has heard of it and all that follows has become jobs, so that any worker can finish what
another has begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from jobs.core.job import Route
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow import NodeView
from jobs.engine.batches import READ_BATCH, batches
from jobs.store.codec.ids import route_in
from jobs.store.codec.jobs import last_error
from jobs.store.codec.records import Record, decode_record
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys

SWEPT = 500
"""Entries that are looked for at once."""


GONE = b'{"type": "JobGone", "message": "The job is not in the store any more.", "traceback": ""}'


class News(NamedTuple):
    """How the job of a node stands. ``version`` grows with each change; times are server ms."""

    run: str
    node: str
    job: str
    version: int
    state: str
    started_at: int = 0
    ended_at: int = 0
    attempts: int = 0
    result: bytes = b""
    error: bytes = b""
    raw: bytes = b""
    """What the outbox holds of it."""

    @property
    def items(self) -> tuple[Any, ...]:
        """As the run's script takes it."""
        return (
            self.node,
            self.job,
            self.version,
            self.state,
            self.started_at,
            self.ended_at,
            self.attempts,
            self.result,
            self.error,
        )

    @property
    def size(self) -> int:
        return len(self.result) + len(self.error)


class Outbox:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes_with_news(self, routes: Sequence[Route]) -> list[Route]:
        """Those of the partitions that have entries; one round trip."""

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                pipeline.exists(self._keys(route).outbox)
            return list(pipeline.execute())

        found = self._store.read(send) if routes else []
        return [route for route, is_there in zip(routes, found, strict=True) if is_there]

    def waiting(self, route: Route) -> Iterator[list[str]]:
        """Ids of all jobs that are news here, in no order, a few hundred at a time."""
        key, cursor = self._keys(route).outbox, 0
        while True:
            cursor, found = self._store.read(lambda client: client.hscan(key, cursor, count=SWEPT))  # noqa: B023
            if found:
                yield [job_id.decode() for job_id in found]
            if cursor == 0:
                return

    def read(self, route: Route, job_ids: Iterable[str]) -> list[News]:
        """What is news of these jobs."""
        found: list[News] = []
        for batch in batches(job_ids, limit=READ_BATCH * 4):
            reply = iter(self._store.run("node_news", self._keys(route), batch))
            found += (_news(*facts) for facts in zip(reply, reply, reply, reply, reply, strict=True))
        return found

    def missed(self, nodes: Mapping[str, NodeView], run_id: str) -> list[News]:
        """What a run should have heard of these jobs (id → node) and never will: the way of the news was lost, or the
        job itself is gone, with a store that was emptied or by hand."""
        by_route: defaultdict[Route, list[str]] = defaultdict(list)
        for job_id in nodes:
            if (route := route_in(job_id)) is not None:
                by_route[route].append(job_id)
        found: list[News] = []
        for route, job_ids in by_route.items():
            for batch in batches(job_ids):
                bodies, records = self._stored(route, batch)
                for job_id, size, raw in zip(batch, bodies, records, strict=True):
                    found += _missed(run_id, nodes[job_id], job_id, is_there=size > 0, raw=raw)
        return found

    def _stored(self, route: Route, job_ids: Sequence[str]) -> tuple[list[int], list[bytes | None]]:
        keys = self._keys(route)

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            pipeline.hmget(keys.states, job_ids)
            for job_id in job_ids:
                pipeline.hstrlen(keys.bodies, job_id)
            return list(pipeline.execute())

        records, *sizes = self._store.read(send)
        return sizes, records

    def told(self, route: Route, news: Iterable[News]) -> None:
        """Their runs have heard of them. What has changed since stays."""
        for batch in batches(news):
            self._store.run("node_told", self._keys(route), [value for one in batch for value in (one.job, one.raw)])

    def _keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)


def version_of(resubmissions: int, *, is_over: bool) -> int:
    """Of news: grows with each end of a job and each resubmission."""
    return 2 * resubmissions + is_over


def _missed(run_id: str, view: NodeView, job_id: str, *, is_there: bool, raw: bytes | None) -> Iterator[News]:
    if not is_there and raw is None:
        yield News(run_id, view.key, job_id, view.version + 1 | 1, JobState.DEAD, error=GONE)
        return
    try:
        record = decode_record(raw) if raw else Record()
    except ValueError:
        record = Record(state=JobState.DEAD)
    if record.state in TERMINAL:
        version = max(version_of(record.resubmissions, is_over=True), view.version + 1 | 1)
        yield News(
            run_id, view.key, job_id, version, record.state, record.started_at, record.finished_at, record.attempt
        )


def _news(job_id: bytes, node: bytes, raw: bytes, result: bytes, attempts: bytes) -> News:
    run, _, key = node.decode().partition("\n")
    try:
        record = decode_record(raw)
    except ValueError:
        record = Record(state=JobState.DEAD)
    is_over = record.state in TERMINAL
    error = last_error(attempts) if record.state in (JobState.DEAD, JobState.CANCELLED) else None
    return News(
        run=run,
        node=key,
        job=job_id.decode(),
        version=version_of(record.resubmissions, is_over=is_over),
        state=record.state if is_over else JobState.READY,
        started_at=record.started_at,
        ended_at=record.finished_at if is_over else 0,
        attempts=record.attempt,
        result=result if record.state == JobState.SUCCEEDED else b"",
        error=msgspec.json.encode(error) if error else b"",
        raw=raw,
    )
