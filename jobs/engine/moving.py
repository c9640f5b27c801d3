"""Moving waiting jobs to another pool.

A job's id says where the job lives, and one script cannot touch two slots. So a job is moved in three steps that may be
repeated: it ends where it was, with a note that names its successor; the successor is created where it goes on; and the
job that ended may be forgotten. Whoever moves is named, and the same one asked again finishes what was half done and
begins nothing twice. Until the last step nothing removes the job that ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from jobs.core.bulk import WAITING
from jobs.core.clock import Clock
from jobs.core.job import Job, Route
from jobs.engine.batches import READ_BATCH, batches
from jobs.engine.jobs import Jobs
from jobs.engine.jobs.refusals import not_found, wrong_state
from jobs.exceptions import SchedulerError, WrongState
from jobs.store.codec.bodies import Body, decode_body, with_meta
from jobs.store.codec.ids import derived_id, route_in
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.topology import Topology

MOVED_FROM = "moved_from"
"""In the ``meta`` of the job that goes on: the id of the one that ended for it."""

BOUND = {
    "node": "is a node of a workflow, whose run knows it where it is",
    "unique": "holds a unique key, which others look for where it is",
}

Outcomes = dict[str, SchedulerError | None]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job that was moved: where it goes on, and by which move."""

    moved_to: str
    pool: str
    move: str


class Moved(NamedTuple):
    """A job that ended, and what its successor is made of. ``due_ms``: 0 where it was ready."""

    id: str
    successor: str
    route: Route
    due_ms: int
    body: bytes


class Moving:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away: ask again then."""

    def __init__(self, store: Store, clock: Clock, topology: Topology, jobs: Jobs) -> None:
        self._store = store
        self._clock = clock
        self._topology = topology
        self._jobs = jobs

    def move(self, ids: Iterable[str], pool: str, *, move: str, at_ms: int, only_finish: bool = False) -> Outcomes:
        """Moves each that waits and is bound to nothing; what went wrong by id, None where nothing did.

        ``move`` and ``at_ms`` name the move: the same again is the same move. ``only_finish``: begins no job more. The
        pool's limit of waiting jobs does not hold them back: they were accepted before.
        """
        outcomes: Outcomes = {id: not_found(id) for id in ids}
        moved: list[Moved] = []
        half: list[tuple[Route, str]] = []
        for route, ids_there in self._jobs.by_route(outcomes):
            if route.pool == pool:
                outcomes |= {id: _is_there(id, pool) for id in ids_there}
                continue
            for batch in batches(ids_there, limit=READ_BATCH):
                for id, answer in zip(batch, self._end(route, batch, pool, move, at_ms, only_finish), strict=True):
                    outcomes[id] = _problem(id, answer[0].decode())
                    if len(answer) > 1:
                        moved.append(_moved(id, *answer[1:]))
                        half.append((route, id))
        for id in self._create(moved):
            outcomes[id] = WrongState(f"Job {id} has ended here, and this version cannot read it.", state="cancelled")
        self._let_go(half)
        return outcomes

    def refusal(self, job: Job, pool: str) -> WrongState | None:
        """Why this job would stay where it is, as far as it shows beforehand; the move itself decides."""
        if job.pool == pool:
            return _is_there(job.id, pool)
        if job.state not in WAITING:
            return wrong_state(job.id, job.state.value)
        bound = "node" if job.workflow_run else "unique" if job.unique_key else ""
        return _is_bound(job.id, bound) if bound else None

    def followed(self, ids: Iterable[str]) -> list[Job]:
        """These jobs as far as they are there, and those that go on for them where they were moved."""
        found, following = dict[str, Job](), [*ids]
        while following:
            jobs = [job for job in self._jobs.get_many(following) if job is not None]
            found |= {job.id: job for job in jobs}
            following = [job.moved_to for job in jobs if job.moved_to and job.moved_to not in found]
        return [*found.values()]

    def _end(
        self, route: Route, ids: Sequence[str], pool: str, move: str, at_ms: int, only_finish: bool
    ) -> Sequence[Any]:
        items: list[str | bytes] = []
        for id in ids:
            successor = derived_id(at_ms, f"{move}\0{id}", self._topology.route_for(pool, id))
            items += [id, msgspec.json.encode(Note(moved_to=successor, pool=pool, move=move))]
        reply: Sequence[Any] = self._store.run(
            "job_move",
            partition_keys(self._store.namespace, route),
            items,
            given_now=self._now(),
            mark=f'"move":{msgspec.json.encode(move).decode()}',
            only_finish="1" if only_finish else "",
        )
        return reply

    def _create(self, moved: Sequence[Moved]) -> list[str]:
        """The second half: those that are there already stay as they are. The ids of those that cannot be read."""
        parsed, unread = list[tuple[Moved, Body]](), list[str]()
        for job in moved:
            try:
                parsed.append((job, decode_body(job.body)))
            except ValueError:
                unread.append(job.id)

        def alike(pair: tuple[Moved, Body]) -> tuple[Route, str, int, int]:
            job, body = pair
            return job.route, body.type, body.priority, job.due_ms

        for (route, type, priority, due), group in groupby(sorted(parsed, key=alike), key=alike):
            for batch in batches(group, lambda pair: len(pair[0].body)):
                items: list[str | bytes] = []
                for job, body in batch:
                    items += [job.successor, with_meta(body, {MOVED_FROM: job.id}) + body.payload]
                self._enqueue(route, items, type=type, priority=priority, run_at=due or "")
        return unread

    def _let_go(self, half: Sequence[tuple[Route, str]]) -> None:
        """The last step: from now on those that ended may be forgotten."""
        for route, group in groupby(half, key=lambda pair: pair[0]):
            for batch in batches([id for _, id in group], limit=READ_BATCH):
                self._store.run("job_move_end", partition_keys(self._store.namespace, route), batch)

    def _enqueue(self, route: Route, items: Sequence[str | bytes], **facts: Any) -> None:
        self._store.run(
            "job_enqueue",
            partition_keys(self._store.namespace, route),
            items,
            given_now=self._now(),
            check_ids="2",
            delay=0,
            void_seen="",
            max_pending="",
            header="",
            **facts,
        )

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def _moved(id: str, note: bytes, due: bytes, body: bytes) -> Moved:
    successor = msgspec.json.decode(note, type=Note).moved_to
    route = route_in(successor)
    assert route is not None, "the id was made by _end"
    return Moved(id, successor, route, int(due), body)


def _is_there(id: str, pool: str) -> WrongState:
    return WrongState(f"Job {id} is in the pool {pool!r} already.", state=None)


def _is_bound(id: str, to: str) -> WrongState:
    return WrongState(f"Job {id} {BOUND[to]}.", state=None, fix="Cancel it, and enqueue it for the other pool.")


def _problem(id: str, answer: str) -> SchedulerError | None:
    if answer == "ok":
        return None
    if answer == "JOB_NOT_FOUND":
        return not_found(id)
    return _is_bound(id, answer) if answer in BOUND else wrong_state(id, answer)
