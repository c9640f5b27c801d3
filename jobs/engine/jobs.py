"""The verbs of people and producers: creating jobs, looking at them, and deciding over them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count, groupby
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import EARLIEST_MS, LATEST_MS, Enqueued, Job, JobSpec, Route, Unique, moment
from jobs.core.states import JobState
from jobs.engine.batches import READ_BATCH, batches
from jobs.engine.caps import Pending
from jobs.engine.holders import Holders, forget_id, void_id
from jobs.engine.listing import JobFilter, Page, list_jobs
from jobs.engine.news import News
from jobs.engine.redaction import Visible
from jobs.exceptions import (
    DuplicateJob,
    JobNotFound,
    OptionInvalid,
    OutcomeUnknown,
    PayloadTooLarge,
    PoolFull,
    SchedulerError,
    StoreUnavailable,
    WrongState,
)
from jobs.store import codec
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.topology import Topology

LONGEST_DELAY_MS = 100 * 366 * 86_400_000

ID_BYTES = 200

_CLAIM_ROUNDS = 20
_CLAIM_SECONDS = 6.0
_HALF_DONE_SECONDS = 0.05


class _IdVoided(Exception):
    """Our claim on the id was taken for abandoned before the job was there. ``seen``: the void that was found."""

    def __init__(self, seen: str) -> None:
        super().__init__(seen)
        self.seen = seen


class Jobs:
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
        self._store = store
        self._settings = settings
        self._clock = clock
        self._topology = topology
        self._news = news
        self._pending = pending
        self._visible = visible
        self._directory = Holders(store, "ids")
        self._unique = Holders(store, "unique")

    # --- creating ------------------------------------------------------------------------------------------------

    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], *, ids: Sequence[str] | None = None) -> list[Enqueued]:
        """Creates one job per payload (JSON objects). A caller's id or a unique key goes with exactly one payload.

        Raises PayloadTooLarge, DuplicateJob, OptionInvalid, PoolFull. Of several payloads either all are refused for
        their size or for want of room, or none; after OutcomeUnknown in a later batch of 1,000 the earlier ones exist.
        ``ids``: from ``new_ids`` for the same pool, one per payload, for callers that must know them before.
        """
        self._refuse_large(payloads)
        _refuse_times(spec)
        spec = self._kept_for_its_window(spec)
        header = codec.encode_header(spec)
        if spec.id is None and spec.unique is None:
            return self._enqueue_many(spec, header, payloads, ids)
        if len(payloads) != 1:
            raise OptionInvalid("A job id or a unique key names one job; enqueue these payloads one by one.")
        body = header + payloads[0]
        if spec.unique is not None:
            return [self._enqueue_unique(spec, spec.unique, body, ids[0] if ids else None)]
        return [self._enqueue_with_id(spec, body)]

    def new_ids(self, pool: str, count: int) -> list[str]:
        """Ids for jobs of this pool that are to be created later."""
        return codec.new_ids(self._topology.route_for(pool), count)

    def _enqueue_many(
        self, spec: JobSpec, header: bytes, payloads: Sequence[bytes], ids: Sequence[str] | None
    ) -> list[Enqueued]:
        if not payloads:
            return []
        made_before = ids is not None
        all_ids = list(ids) if ids is not None else self.new_ids(spec.pool, len(payloads))
        route = codec.route_in(all_ids[0])
        if route is None or len(all_ids) != len(payloads):
            raise OptionInvalid("One id of ours is needed for each payload.")
        created: list[Enqueued] = []
        for batch in batches(zip(all_ids, payloads, strict=True), lambda pair: len(pair[1])):
            batch_ids = [job_id for job_id, _ in batch]
            bodies = [header + payload for _, payload in batch]
            to_follow = len(all_ids) - len(created) - len(batch_ids)  # all of them find room, or none is created
            check_ids = "2" if made_before else ""
            now, due, _ = self._create(spec, route, batch_ids, bodies, check_ids=check_ids, to_follow=to_follow)
            state, run_at = _first_state(now, due), moment(due)
            created += [
                Enqueued(id=job_id, type=spec.type, pool=spec.pool, state=state, run_at=run_at) for job_id in batch_ids
            ]
        return created

    def _enqueue_with_id(self, spec: JobSpec, body: bytes) -> Enqueued:
        job_id = checked_id(spec.id)
        void_seen = ""
        for _ in _rounds():
            route = self._claim_id(job_id, self._topology.route_for(spec.pool, job_id), void_seen)
            try:
                return self._enqueue_claimed(spec, route, job_id, body, void_seen)
            except _IdVoided as void:
                void_seen = void.seen
        raise OutcomeUnknown(f"The id {job_id!r} is fought over; nothing was created.", fix="Try again.")

    def _claim_id(self, job_id: str, route: Route, void_seen: str = "") -> Route:
        """Enters the id into the directory; DuplicateJob if a job has it. See the module ``holders``."""
        claim = f"{route}~{void_seen}" if void_seen else str(route)
        for _ in range(_CLAIM_ROUNDS):
            holder = self._directory.take(job_id, claim)
            claimed = codec.claimed_route(holder)
            if claimed == route and _void_in(holder) >= _void_in(claim):
                return route
            is_elsewhere = claimed is not None and claimed != route and self._topology.exists(claimed)
            if claimed is not None and is_elsewhere and not self._void(claimed, job_id):
                raise _id_taken(job_id)
            if self._directory.take(job_id, claim, expected=holder) == claim:
                return route
        raise _id_taken(job_id)

    def _enqueue_claimed(self, spec: JobSpec, route: Route, job_id: str, body: bytes, void_seen: str = "") -> Enqueued:
        """The second step. DuplicateJob if a job has the id, _IdVoided if somebody took our claim for abandoned."""
        try:
            now, due, refused = self._create(spec, route, [job_id], [body], check_ids="1", void_seen=void_seen)
        except PoolFull:
            if spec.id is not None:
                self._forget_id(route, job_id)
            raise
        if refused:
            why, _, void = refused[1].decode().partition(":")
            raise _IdVoided(void) if why == "voided" else _id_taken(job_id)
        return Enqueued(
            id=job_id,
            type=spec.type,
            pool=spec.pool,
            state=_first_state(now, due),
            run_at=moment(due),
        )

    def _enqueue_unique(self, spec: JobSpec, unique: Unique, body: bytes, made_id: str | None) -> Enqueued:
        name = _unique_name(spec.type, unique.key)
        void_seen = ""
        replaced: list[str] = []
        for _ in _rounds():
            if spec.id is not None:
                job_id = checked_id(spec.id)
                route = self._claim_id(job_id, self._topology.route_for(spec.pool, job_id), void_seen)
            else:
                job_id = made_id or self.new_ids(spec.pool, 1)[0]
                made_id = None  # a second round needs another
                route = codec.route_in(job_id) or self._topology.route_for(spec.pool)
            existing = self._claim_unique(name, job_id, unique.on_duplicate, replaced)
            if existing is not None:
                self._count_duplicate(existing)
                if spec.id is not None:
                    self._forget_id(route, job_id)
                if unique.on_duplicate == "raise":
                    raise DuplicateJob(
                        f"Job {existing.id} already holds the unique key {unique.key!r}.", job_id=existing.id
                    )
                return _as_existing(existing)
            try:
                return self._enqueue_claimed(spec, route, job_id, body, void_seen)
            except _IdVoided as void:
                void_seen = void.seen if spec.id is not None else ""  # else the next round has another id
            except PoolFull:
                if self._void(route, job_id):
                    self._unique.drop(name, job_id)
                raise
            except DuplicateJob:
                # The claim stays: it is that job's own, or whoever wants the key takes it over.
                if spec.id is not None:
                    raise
                return _as_existing(self.get(job_id))  # made before, by the same request
            except StoreUnavailable as error:
                if not replaced:
                    raise
                raise OutcomeUnknown(
                    f"Job {replaced[-1]} was cancelled to be replaced, and its successor could not be created: {error}",
                    fix="Enqueue it again.",
                ) from error
        raise OutcomeUnknown(f"The unique key {unique.key!r} is fought over; nothing was created.", fix="Try again.")

    def _count_duplicate(self, existing: Job) -> None:
        """An enqueue that came to nothing, since this job holds the unique key: counted where that job is."""
        self._store.run(
            "figures_count",
            self._keys(Route(existing.pool, existing.queue_version, existing.partition)),
            given_now=self._now(),
            figure="duplicates",
            type=existing.type,
            number=1,
        )

    def _claim_unique(self, name: str, job_id: str, on_duplicate: str, replaced: list[str] | None = None) -> Job | None:
        """Claims the key for the job to be; the job that holds it where one does. ``replaced``: gets the ids of jobs
        that were cancelled for it."""
        holder = self._unique.take(name, job_id)
        for _ in _rounds():
            if holder == job_id:
                return None
            held_by = self.settled(holder)
            is_live = held_by is not None and self.holds_unique_key(held_by, name)
            if held_by is not None and is_live:
                if on_duplicate != "replace" or not self._cancel_waiting(holder):
                    return held_by
                if replaced is not None and not held_by.is_terminal:
                    replaced.append(holder)
            if held_by is not None or self.void(holder):
                holder = self._unique.take(name, job_id, expected=holder)
        raise OutcomeUnknown("The unique key is fought over; nothing was created.", fix="Try again.")

    def settled(self, job_id: str) -> Job | None:
        """The job; where it is not there yet, another look after the moment that its enqueue may take."""
        job = self.find(job_id)
        if job is None:
            time.sleep(_HALF_DONE_SECONDS)
            job = self.find(job_id)
        return job

    def holds_unique_key(self, job: Job, name: str) -> bool:
        """Whether the job still keeps others away from the key that is claimed under this name."""
        if job.unique_key is None or _unique_name(job.type, job.unique_key) != name:
            return False
        until = self.unique_until(job.id)
        if until == "started":
            return not job.is_terminal and job.started_at is None and not job.attempts
        if isinstance(until, (int, float)):
            return self.server_now_ms() < job.created_at.timestamp() * 1000 + until * 1000
        return not job.is_terminal

    def unique_until(self, job_id: str) -> str | float | None:
        """How long the job's unique key holds; None where it has none."""
        route = self._route_of(job_id)
        keys = self._keys(route) if route else None
        raw = self._store.read(lambda client: client.hget(keys.bodies, job_id)) if keys else None
        try:
            unique = codec.decode_body(raw).extras.get("unique") if raw else None
        except ValueError:
            return None
        return unique[1] if unique else None

    def _cancel_waiting(self, job_id: str) -> bool:
        try:
            self._cancel(job_id, only_waiting=True)
        except WrongState as error:
            return error.state not in (JobState.LEASED, None)
        except JobNotFound:
            return True
        return True

    def _create(
        self,
        spec: JobSpec,
        route: Route,
        ids: list[str],
        bodies: list[bytes],
        *,
        check_ids: str = "",
        void_seen: str = "",
        to_follow: int = 0,
    ) -> tuple[int, int, list[bytes]]:
        items: list[str | bytes] = []
        for pair in zip(ids, bodies, strict=True):
            items += pair
        limit = self.pending_limit(spec)
        try:
            now, due, *refused = self._store.run(
                "job_enqueue",
                self._keys(route),
                items,
                when_resent={"check_ids": "2"},
                given_now=self._now(),
                check_ids=check_ids,
                type=spec.type,
                priority=spec.priority,
                delay=max(0, spec.delay_ms),
                run_at="" if spec.run_at_ms is None else spec.run_at_ms,
                void_seen=void_seen,
                max_pending="" if limit is None else limit - to_follow,
            )
        except PoolFull as full:
            raise _pool_full(spec, len(ids), full, self._pending.of(spec.pool)) from None
        return int(now), int(due), refused

    def pending_limit(self, spec: JobSpec) -> int | None:
        """How many jobs may wait in the partition of a new one; None where any number may. A workflow has decided for
        its children before: they are never refused."""
        limit = None if spec.workflow_run is not None else self._pending.of(spec.pool)
        return None if limit is None else -(-limit // len(self._topology.partitions(spec.pool)))

    def _kept_for_its_window(self, spec: JobSpec) -> JobSpec:
        """A job is what holds its unique key: it is kept at least as long as the key's window."""
        window = spec.unique.until if spec.unique else 0.0
        kept = self._settings.retention_seconds if spec.result_ttl is None else spec.result_ttl
        if isinstance(window, str) or window <= kept:
            return spec
        return msgspec.structs.replace(spec, result_ttl=float(window))

    def _refuse_large(self, payloads: Sequence[bytes]) -> None:
        limit = self._settings.payload_limit
        longest = max(map(len, payloads), default=0)
        if longest > limit:
            raise PayloadTooLarge(
                f"The payload has {longest} bytes; at most {limit} are allowed.",
                fix="Store the data elsewhere and pass a reference, or raise SCHEDULER['PAYLOAD_LIMIT'].",
            )

    # --- looking --------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        """The job as it is now. JobNotFound."""
        job = self.find(job_id)
        if job is None:
            raise _not_found(job_id)
        return job

    def find(self, job_id: str) -> Job | None:
        """The job as it is now, None where there is none."""
        return self.get_many([job_id])[0]

    def get_many(self, job_ids: Iterable[str]) -> list[Job | None]:
        """The jobs in the order of the ids, None for those that are not there."""
        wanted = list(job_ids)
        found: dict[str, Job | None] = {}
        for route, ids in self._by_route(wanted):
            for batch in batches(ids, limit=READ_BATCH):
                found.update(zip(batch, self._read(route, batch), strict=True))
        return [found.get(job_id) for job_id in wanted]

    def page(self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50) -> Page:
        """One page of the jobs that match, state by state. OptionInvalid for a cursor that is none."""
        return list_jobs(
            self._store,
            self._topology.partitions(filter.pool if filter else None),
            self._read,
            filter or JobFilter(),
            cursor,
            limit,
            self._visible.job,
        )

    def _read(self, route: Route, job_ids: Sequence[str]) -> list[Job | None]:
        reply = self._store.run("job_read", self._keys(route), job_ids)
        return [codec.decode_job(route, job_id, codec.RawJob(*raw)) for job_id, raw in zip(job_ids, reply, strict=True)]

    def count_ended(self, states: Iterable[JobState], *, pool: str | None = None, until: datetime | None = None) -> int:
        """How many jobs ended in these states, at or before ``until``. Costs the same however many there are."""
        newest = "+inf" if until is None else int(until.timestamp() * 1000)
        lines = [self._keys(route).index(state) for route in self._topology.partitions(pool) for state in states]

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
        self._cancel(job_id)
        job = self.get(job_id)
        if job.state == JobState.LEASED:
            self._hurry_its_host(job_id)
        return job

    def cancel_waiting(self, job_id: str) -> None:
        """Stops a job only if it has not begun. JobNotFound, WrongState."""
        self._cancel(job_id, only_waiting=True)

    def _hurry_its_host(self, job_id: str) -> None:
        """It finds the mark when it renews the lease; the news makes it look now."""
        with suppress(StoreUnavailable, OutcomeUnknown):
            self._news.tell("cancel", job_id)

    def _cancel(self, job_id: str, *, only_waiting: bool = False) -> None:
        self._decide("job_cancel", job_id, only_waiting="1" if only_waiting else "")

    def run_now(self, job_id: str) -> Job:
        """Makes a job that waits for a time ready. JobNotFound, WrongState."""
        self._decide("job_run_now", job_id)
        return self.get(job_id)

    def resubmit(self, job_id: str, payload: bytes | None = None) -> Job:
        """Makes a dead or cancelled job live again, with fresh budgets and, if given, a new payload.

        JobNotFound, WrongState; DuplicateJob where another live job holds its unique key by now.
        """
        if payload is not None:
            self._refuse_large([payload])
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
        outcome = self._reclaim_unique_keys(job_ids)
        allowed = [job_id for job_id in job_ids if job_id not in outcome]
        outcome.update(
            self._decide_many(
                "job_resubmit",
                allowed,
                given_now=self._now(),
                payload=b"" if payload is None else payload,
                ended_by="" if ended_by_ms is None else ended_by_ms,
            )
        )
        return outcome

    def _reclaim_unique_keys(self, job_ids: list[str]) -> dict[str, SchedulerError | None]:
        """Dead and cancelled jobs gave up their unique key: take it again, or say who has it."""
        refused: dict[str, SchedulerError | None] = {}
        for job in self.get_many(job_ids):
            if job is None or job.unique_key is None or job.state not in (JobState.DEAD, JobState.CANCELLED):
                continue
            holder = self._claim_unique(_unique_name(job.type, job.unique_key), job.id, "return")
            if holder is not None:
                refused[job.id] = DuplicateJob(
                    f"Job {holder.id} holds the unique key {job.unique_key!r} by now.", job_id=holder.id
                )
        return refused

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
        callers = {job_id: self._route_of(job_id) for job_id in ids if codec.route_in(job_id) is None}
        outcome = self._decide_many("job_discard", ids, ended_by="" if ended_by_ms is None else ended_by_ms)
        for job_id, route in callers.items():
            if outcome[job_id] is None and route is not None:
                self._forget_id(route, job_id)
        return outcome

    def _decide(self, script: str, job_id: str, **arguments: Any) -> None:
        route = self._route_of(job_id)
        if route is None:
            raise _not_found(job_id)
        try:
            self._store.run(script, self._keys(route), resend=False, given_now=self._now(), id=job_id, **arguments)
        except JobNotFound:
            raise _not_found(job_id) from None
        except WrongState as error:
            raise _wrong_state(job_id, error.state) from None

    def _decide_many(self, script: str, job_ids: list[str], **arguments: Any) -> dict[str, SchedulerError | None]:
        outcome: dict[str, SchedulerError | None] = {job_id: _not_found(job_id) for job_id in job_ids}
        for route, ids in self._by_route(job_ids):
            for batch in batches(ids, limit=READ_BATCH):
                answers = self._store.run(script, self._keys(route), batch, resend=False, **arguments)
                for job_id, answer in zip(batch, answers, strict=True):
                    outcome[job_id] = _problem(job_id, answer.decode())
        return outcome

    # --- routes and time --------------------------------------------------------------------------------------------

    def server_now_ms(self) -> int:
        """The time by which jobs are due."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def _route_of(self, job_id: str) -> Route | None:
        route = codec.route_in(job_id)
        if route is not None:
            return route if self._topology.exists(route) else None
        return self._topology.claimed_route(job_id) if _can_be_id(job_id) else None

    def _by_route(self, job_ids: Iterable[str]) -> list[tuple[Route, list[str]]]:
        routed = [(route, job_id) for job_id in dict.fromkeys(job_ids) if (route := self._route_of(job_id)) is not None]
        routed.sort(key=lambda pair: pair[0])
        return [(route, [job_id for _, job_id in pairs]) for route, pairs in groupby(routed, key=lambda pair: pair[0])]

    def void(self, job_id: str) -> bool:
        """Makes sure that this id never becomes a job; False where it is one already."""
        route = self._route_of(job_id)
        return route is None or self._void(route, job_id)

    def _void(self, route: Route, job_id: str) -> bool:
        return void_id(self._store, route, job_id, self._now())

    def _forget_id(self, route: Route, job_id: str) -> None:
        forget_id(self._store, route, job_id, self._now())

    def _keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def _void_in(claim: str) -> float:
    """The void that a claimant had seen; 0 where it had seen none."""
    return float(claim.partition("~")[2] or 0)


def _rounds() -> Iterator[int]:
    """Rounds of a fight over a name, for a few seconds; who lost one waits a moment, so that the winner can finish."""
    deadline = time.monotonic() + _CLAIM_SECONDS
    for number in count():
        yield number
        if time.monotonic() > deadline:
            return
        time.sleep(random.uniform(0, min(0.002 * number, 0.05)))


def _refuse_times(spec: JobSpec) -> None:
    run_at = spec.run_at_ms or 0
    if spec.delay_ms > LONGEST_DELAY_MS or not EARLIEST_MS <= run_at <= LATEST_MS:
        raise OptionInvalid("The time of the job is out of range.", fix="Delay it by at most 100 years.")


def checked_id(job_id: str | None) -> str:
    """The id itself; OptionInvalid where it cannot be a job's."""
    if not isinstance(job_id, str) or not _can_be_id(job_id):
        raise OptionInvalid(
            f"{job_id!r} cannot be a job id.",
            fix=f"Use 1 to {ID_BYTES} bytes of printable text without spaces at its ends.",
        )
    if codec.route_in(job_id) is not None:
        raise OptionInvalid(
            f"{job_id!r} has the form of the ids that the scheduler makes.", fix="Choose an id of another form."
        )
    return job_id


def _can_be_id(job_id: str) -> bool:
    try:
        size = len(job_id.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= ID_BYTES and job_id.isprintable() and job_id.strip() == job_id


def _unique_name(type_name: str, key: str) -> str:
    return f"{type_name}\0{key}"


def _first_state(now: int, due: int) -> str:
    return JobState.READY if due <= now else JobState.SCHEDULED


def _as_existing(job: Job) -> Enqueued:
    return Enqueued(id=job.id, type=job.type, pool=job.pool, state=job.state, run_at=job.run_at, existing=True)


def _id_taken(job_id: str) -> DuplicateJob:
    return DuplicateJob(
        f"A job with the id {job_id!r} exists already.",
        job_id=job_id,
        fix="It was enqueued before: look at it with get_job, or choose another id.",
    )


def _not_found(job_id: str) -> JobNotFound:
    return JobNotFound(f"There is no job {job_id!r}.", fix="Ended jobs are forgotten after their retention.")


def _wrong_state(job_id: str, state: str | None) -> WrongState:
    return WrongState(f"Job {job_id} is {state}; that does not allow this.", state=state)


def _pool_full(spec: JobSpec, count: int, full: PoolFull, limit: int | None) -> PoolFull:
    asked = "a new job" if count == 1 else f"{count:,} new jobs"
    return PoolFull(
        f"The pool {spec.pool!r} has no room for {asked}: {str(full).rstrip('.')}, and at most {limit} may.",
        fix="Try again when some have run, or raise the limit: `manage.py pools limit`.",
    )


def _problem(job_id: str, answer: str) -> SchedulerError | None:
    if answer == "ok":
        return None
    if answer == "later":
        return WrongState(f"Job {job_id} has lived on and ended again since it was chosen.", state=None)
    return _not_found(job_id) if answer == "JOB_NOT_FOUND" else _wrong_state(job_id, answer)
