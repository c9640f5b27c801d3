"""Creating jobs: many at once, or one under a caller's id or a unique key. See the module ``holders``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.job import EARLIEST_MS, LATEST_MS, Enqueued, Job, JobSpec, Route, Unique, moment
from jobs.core.states import JobState
from jobs.engine.batches import batches
from jobs.engine.caps import Pending
from jobs.engine.holders import Holders, forget_id
from jobs.engine.jobs.ids import checked_id
from jobs.engine.jobs.refusals import broken_off, id_taken, key_taken, pool_full
from jobs.engine.jobs.stored import StoredJobs
from jobs.engine.jobs.unique_keys import UniqueKeys, claim_name, rounds
from jobs.exceptions import DuplicateJob, OptionInvalid, OutcomeUnknown, PayloadTooLarge, PoolFull, StoreUnavailable
from jobs.store.codec.bodies import encode_header
from jobs.store.codec.ids import claimed_route, new_ids, route_in
from jobs.store.connection import Store
from jobs.store.scripts import Call
from jobs.store.topology import Topology

LONGEST_DELAY_MS = 100 * 366 * 86_400_000

_CLAIM_ROUNDS = 20

_SENT_BEFORE = {"check_ids": "2"}
"""Of what the script finds it then says that it has created it before, if it is the same."""


class _IdVoided(Exception):
    """Our claim on the id was taken for abandoned before the job was there. ``seen``: the void that was found."""

    def __init__(self, seen: str) -> None:
        super().__init__(seen)
        self.seen = seen


class Creation:
    """See the module."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        topology: Topology,
        pending: Pending,
        jobs: StoredJobs,
        unique_keys: UniqueKeys,
    ) -> None:
        self._store = store
        self._settings = settings
        self._topology = topology
        self._pending = pending
        self._jobs = jobs
        self._unique_keys = unique_keys
        self._directory = Holders(store, "ids")
        self._last_header: tuple[JobSpec, bytes] | None = None

    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], ids: Sequence[str] | None) -> list[Enqueued]:
        """See ``Jobs.enqueue``."""
        self.refuse_large(payloads)
        _refuse_times(spec)
        spec = self._kept_for_its_window(spec)
        header = self._header(spec)
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
        return new_ids(self._topology.route_for(pool), count)

    def pending_limit(self, spec: JobSpec) -> int | None:
        """How many jobs may wait in the partition of a new one; None where any number may. A workflow has decided for
        its children before: they are never refused."""
        limit = None if spec.workflow_run is not None else self._pending.of(spec.pool)
        return None if limit is None else -(-limit // len(self._topology.partitions(spec.pool)))

    def refuse_large(self, payloads: Sequence[bytes]) -> None:
        """PayloadTooLarge where one of them is."""
        limit = self._settings.payload_limit
        longest = max(map(len, payloads), default=0)
        if longest > limit:
            raise PayloadTooLarge(
                f"The payload has {longest} bytes; at most {limit} are allowed.",
                fix="Store the data elsewhere and pass a reference, or raise SCHEDULER['PAYLOAD_LIMIT'].",
            )

    def _header(self, spec: JobSpec) -> bytes:
        """What the last one had, if it is the same: an enqueue without options has its type's own request."""
        last = self._last_header
        if last is None or last[0] is not spec:
            self._last_header = last = (spec, encode_header(spec))
        return last[1]

    def _kept_for_its_window(self, spec: JobSpec) -> JobSpec:
        """A job is what holds its unique key: it is kept at least as long as the key's window."""
        window = spec.unique.until if spec.unique else 0.0
        kept = self._settings.retention_seconds if spec.result_ttl is None else spec.result_ttl
        if isinstance(window, str) or window <= kept:
            return spec
        return msgspec.structs.replace(spec, result_ttl=float(window))

    # --- many -----------------------------------------------------------------------------------------------------

    def _enqueue_many(
        self, spec: JobSpec, header: bytes, payloads: Sequence[bytes], ids: Sequence[str] | None
    ) -> list[Enqueued]:
        if not payloads:
            return []
        route = self._topology.route_for(spec.pool) if ids is None else route_in(ids[0])
        if route is None or (ids is not None and len(ids) != len(payloads)):
            raise OptionInvalid("One id of ours is needed for each payload.")
        check_ids = "" if ids is None else "2"  # "2": whoever knew the ids before may have sent them before
        all_ids = new_ids(route, len(payloads)) if ids is None else list(ids)
        if len(payloads) == 1:
            now, due, _ = self._create(spec, route, all_ids[0], payloads[0], header=header, check_ids=check_ids)
            return [_created(spec, all_ids[0], now, due)]
        parts: list[list[str]] = []

        def calls() -> Iterator[Call]:
            sent = 0
            for batch in batches(payloads, len):
                parts.append(all_ids[sent : sent + len(batch)])
                sent += len(batch)
                to_follow = len(all_ids) - sent  # all of them find room, or none is created
                arguments = self._arguments(spec, header=header, check_ids=check_ids, to_follow=to_follow)
                yield Call(self._jobs.keys(route), arguments, _interleaved(parts[-1], batch))

        created: list[Enqueued] = []
        try:
            for now, due, *_ in self._store.run_ahead("job_enqueue", calls(), when_resent=_SENT_BEFORE):
                created += [_created(spec, job_id, now, due) for job_id in parts.pop(0)]
        except PoolFull as full:
            refusal = pool_full(spec, len(parts[0]), full, self._pending.of(spec.pool))
            if not created:
                raise refusal from None
            raise broken_off(len(created), len(all_ids), refusal) from full
        except StoreUnavailable as error:
            if not created:
                raise
            raise broken_off(len(created), len(all_ids), error) from error
        return created

    def _create(
        self,
        spec: JobSpec,
        route: Route,
        job_id: str,
        body: bytes,
        *,
        header: bytes = b"",
        check_ids: str = "",
        void_seen: str = "",
    ) -> tuple[int, int, list[bytes]]:
        """One job: the server's time, when it is due, and why it was not created if its id was taken."""
        try:
            now, due, *refused = self._store.run(
                "job_enqueue",
                self._jobs.keys(route),
                (job_id, body),
                when_resent=_SENT_BEFORE,
                **self._arguments(spec, header=header, check_ids=check_ids, void_seen=void_seen),
            )
        except PoolFull as full:
            raise pool_full(spec, 1, full, self._pending.of(spec.pool)) from None
        return now, due, refused

    def _arguments(
        self, spec: JobSpec, *, header: bytes = b"", check_ids: str = "", void_seen: str = "", to_follow: int = 0
    ) -> dict[str, Any]:
        """Of the script. ``header``: what all bodies begin with and none of them brings along."""
        limit = self.pending_limit(spec)
        return {
            "given_now": self._jobs.now(),
            "check_ids": check_ids,
            "type": spec.type,
            "priority": spec.priority,
            "delay": max(0, spec.delay_ms),
            "run_at": "" if spec.run_at_ms is None else spec.run_at_ms,
            "void_seen": void_seen,
            "max_pending": "" if limit is None else limit - to_follow,
            "header": header,
        }

    # --- a caller's id --------------------------------------------------------------------------------------------

    def _enqueue_with_id(self, spec: JobSpec, body: bytes) -> Enqueued:
        job_id = checked_id(spec.id)
        void_seen = ""
        for _ in rounds():
            route = self._claim_id(spec, job_id, void_seen)
            try:
                return self._enqueue_claimed(spec, route, job_id, body, void_seen)
            except _IdVoided as void:
                void_seen = void.seen
        raise OutcomeUnknown(f"The id {job_id!r} is fought over; nothing was created.", fix="Try again.")

    def _claim_id(self, spec: JobSpec, job_id: str, void_seen: str = "") -> Route:
        """Enters the id into the directory; DuplicateJob if a job has it. See the module ``holders``."""
        route = self._topology.route_for(spec.pool, job_id)
        claim = f"{route}~{void_seen}" if void_seen else str(route)
        for _ in range(_CLAIM_ROUNDS):
            holder = self._directory.take(job_id, claim)
            claimed = claimed_route(holder)
            if claimed == route and _void_in(holder) >= _void_in(claim):
                return route
            is_elsewhere = claimed is not None and claimed != route and self._topology.exists(claimed)
            if claimed is not None and is_elsewhere and not self._jobs.void_at(claimed, job_id):
                self._count_duplicate(claimed, spec.type)
                raise id_taken(job_id)
            if self._directory.take(job_id, claim, expected=holder) == claim:
                return route
        raise id_taken(job_id)

    def _enqueue_claimed(self, spec: JobSpec, route: Route, job_id: str, body: bytes, void_seen: str = "") -> Enqueued:
        """The second step. DuplicateJob if a job has the id, _IdVoided if somebody took our claim for abandoned."""
        try:
            now, due, refused = self._create(spec, route, job_id, body, check_ids="1", void_seen=void_seen)
        except PoolFull:
            if spec.id is not None:
                self._forget_id(route, job_id)
            raise
        if refused:
            why, _, void = refused[1].decode().partition(":")
            raise _IdVoided(void) if why == "voided" else id_taken(job_id)
        return _created(spec, job_id, now, due)

    def _forget_id(self, route: Route, job_id: str) -> None:
        forget_id(self._store, route, job_id, self._jobs.now())

    # --- a unique key ---------------------------------------------------------------------------------------------

    def _enqueue_unique(self, spec: JobSpec, unique: Unique, body: bytes, made_id: str | None) -> Enqueued:
        name = claim_name(spec.type, unique.key)
        void_seen = ""
        replaced: list[str] = []
        for _ in rounds():
            if spec.id is not None:
                job_id = checked_id(spec.id)
                route = self._claim_id(spec, job_id, void_seen)
            else:
                job_id = made_id or self.new_ids(spec.pool, 1)[0]
                made_id = None  # a second round needs another
                route = route_in(job_id) or self._topology.route_for(spec.pool)
            existing = self._unique_keys.claim(name, job_id, unique.on_duplicate, replaced)
            if existing is not None:
                held_in = Route(existing.pool, existing.queue_version, existing.partition)
                self._count_duplicate(held_in, existing.type)
                if spec.id is not None:
                    self._forget_id(route, job_id)
                if unique.on_duplicate == "raise":
                    raise key_taken(existing.id, unique.key)
                return _as_existing(existing)
            try:
                return self._enqueue_claimed(spec, route, job_id, body, void_seen)
            except _IdVoided as void:
                void_seen = void.seen if spec.id is not None else ""  # else the next round has another id
            except PoolFull:
                if self._jobs.void_at(route, job_id):
                    self._unique_keys.drop(name, job_id)
                raise
            except DuplicateJob:
                # The claim stays: it is that job's own, or whoever wants the key takes it over.
                if spec.id is not None:
                    raise
                return _as_existing(self._jobs.get(job_id))  # made before, by the same request
            except StoreUnavailable as error:
                if not replaced:
                    raise
                raise OutcomeUnknown(
                    f"Job {replaced[-1]} was cancelled to be replaced, and its successor could not be created: {error}",
                    fix="Enqueue it again.",
                ) from error
        raise OutcomeUnknown(f"The unique key {unique.key!r} is fought over; nothing was created.", fix="Try again.")

    def _count_duplicate(self, route: Route, type: str) -> None:
        """An enqueue that came to nothing, since a job has its id or unique key: counted where that job is."""
        self._store.run(
            "figures_count",
            self._jobs.keys(route),
            given_now=self._jobs.now(),
            figure="duplicates",
            type=type,
            number=1,
        )


def _void_in(claim: str) -> float:
    """The void that a claimant had seen; 0 where it had seen none."""
    return float(claim.partition("~")[2] or 0)


def _refuse_times(spec: JobSpec) -> None:
    run_at = spec.run_at_ms or 0
    if spec.delay_ms > LONGEST_DELAY_MS or not EARLIEST_MS <= run_at <= LATEST_MS:
        raise OptionInvalid("The time of the job is out of range.", fix="Delay it by at most 100 years.")


def _interleaved(ids: Sequence[str], bodies: Sequence[bytes]) -> list[str | bytes]:
    items: list[str | bytes] = [b""] * (2 * len(ids))
    items[::2], items[1::2] = ids, bodies
    return items


def _created(spec: JobSpec, job_id: str, now: int, due: int) -> Enqueued:
    state = JobState.READY if due <= now else JobState.SCHEDULED
    return Enqueued(id=job_id, type=spec.type, pool=spec.pool, state=state, run_at=moment(due))


def _as_existing(job: Job) -> Enqueued:
    return Enqueued(id=job.id, type=job.type, pool=job.pool, state=job.state, run_at=job.run_at, existing=True)
