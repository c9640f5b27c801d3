"""The verbs of workers: taking jobs, keeping them, ending attempts, and taking back what others lost.

Each is one script over one partition. Each may be sent again with the same token: the second time changes nothing.
All raise StoreUnavailable or OutcomeUnknown where the server is away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import LeasedJob, Route
from jobs.core.states import JobState
from jobs.engine.batches import BATCH, WRITE_BATCH, batches
from jobs.engine.holders import forget_id
from jobs.engine.lines import are_empty
from jobs.engine.news import News
from jobs.engine.taking import FAIL_BATCH, Taking, moment_or_none
from jobs.exceptions import LeaseLost, OutcomeUnknown, StoreUnavailable
from jobs.store.codec.ids import route_in
from jobs.store.codec.jobs import encode_progress
from jobs.store.codec.leases import LeaseDecoder
from jobs.store.codec.records import decode_record, encode_run
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys

Lease = tuple[str, str]
"""Job id and token."""

_Alike = tuple[str, str, int | None, bool]
"""What completions that are told as one group share: token, type, own retention, and whether they have results."""

PRUNED_LINES = ("succeeded", "cancelled", "skipped")


class RenewReply(NamedTuple):
    """``lost``: not ours any more. ``ended``: ended under this token. ``cancelled``: still ours, but asked to stop."""

    now: int
    lost: list[Lease]
    ended: list[Lease]
    cancelled: list[Lease]


class Completion(msgspec.Struct, frozen=True, gc=False):
    """An attempt that succeeded. ``started_at``: server ms. ``result``: JSON or None. ``ttl_ms``: own retention."""

    id: str
    token: str
    type: str
    started_at: int
    result: bytes | None = None
    ttl_ms: int | None = None


class PromoteReply(NamedTuple):
    promoted: int
    next_due: int | None
    now: int


class RecoverReply(NamedTuple):
    """``recovered``: charged a crash, ``buried`` of them went to the DLQ. ``released``: never started, handed back as
    they were. ``held``: nothing was taken because the server's clock jumped. ``next_deadline``: of the first live
    lease, ms."""

    recovered: int
    released: int
    buried: int
    next_deadline: int | None
    now: int
    held: bool
    buried_ids: tuple[str, ...] = ()


class Leases(Taking):
    """See the module."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, news: News) -> None:
        super().__init__(store, settings, clock)
        self._news = news

    def start(self, route: Route, marks: Iterable[tuple[str, str, int]]) -> None:
        """Marks jobs (id, token, server ms) as really started: only such a job is charged for its worker's death."""
        for batch in batches(marks, limit=WRITE_BATCH):
            self._run("job_start", route, [value for mark in batch for value in mark])

    def held(self, route: Route, job_id: str, token: str) -> LeasedJob | None:
        """A job that is leased under this token, as its lease gave it; None where it is not any more."""
        keys = self._keys(route)

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            pipeline.hget(keys.states, job_id)
            pipeline.hget(keys.bodies, job_id)
            return list(pipeline.execute())

        raw_record, raw_body = self._store.read(send)
        try:
            record = decode_record(raw_record or b"")
            if record.state != JobState.LEASED or record.token != token:
                return None
            return LeaseDecoder(route, token, record.leased_at).decode(job_id.encode(), raw_record, b"", raw_body)
        except ValueError:
            return None

    def renew(self, route: Route, leases: Iterable[Lease], lease_ms: int) -> RenewReply:
        """Gives each lease that is still held another ``lease_ms`` from now."""
        now, lost, ended, cancelled = 0, list[Lease](), list[Lease](), list[Lease]()
        for batch in batches(leases):
            now, *answers = self._run("job_renew", route, _flat(batch), given_now=self._now(), lease_ms=lease_ms)
            for lease, answer in zip(batch, answers, strict=True):
                if answer == b"lost":
                    lost.append(lease)
                elif answer == b"ended":
                    ended.append(lease)
                elif answer == b"cancel":
                    cancelled.append(lease)
        return RenewReply(now, lost, ended, cancelled)

    def complete(self, route: Route, completions: Sequence[Completion]) -> list[str]:
        """For each "ok", "cancelled" (it was asked to stop; the result is dropped) or "lost"."""
        answers: list[str] = []
        for batch in batches(completions, lambda completion: len(completion.result or b"")):
            groups: defaultdict[_Alike, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
            for done in batch:
                run = groups[done.token, done.type, done.ttl_ms, bool(done.result)][done.started_at]
                run.append(done.id)
                if done.result:
                    run.append(done.result)
            items: list[Any] = []
            for (token, type_name, ttl_ms, has_results), runs in groups.items():
                items += (token, type_name, "" if ttl_ms is None else ttl_ms, "1" if has_results else "", len(runs))
                for started_at, values in runs.items():
                    items += (encode_run(started_at, len(values) // (2 if has_results else 1)), *values)
            exceptions = self._run(
                "job_complete", route, items, given_now=self._now(), attempts_kept=self._settings.attempts_kept
            )
            answers += _answers_but(exceptions, batch, groups) if exceptions else ["ok"] * len(batch)
        return answers

    def release(self, route: Route, leases: Iterable[Lease], *, charged: bool = False) -> list[str]:
        """Hands jobs back at their old place; ``charged``: the attempt had begun and counts. State or "lost" for
        each."""
        answers: list[str] = []
        for batch in batches(leases, limit=FAIL_BATCH if charged else WRITE_BATCH):
            answers += self._answers(
                "job_release",
                route,
                _flat(batch),
                charged="1" if charged else "",
                attempts_kept=self._settings.attempts_kept,
            )
        return answers

    def crash(self, route: Route, marks: Iterable[tuple[str, str, int]], *, reason: str) -> list[str]:
        """The worker died while it ran these (id, token, started at in server ms): one crash each. State or "lost"."""
        failure = msgspec.json.encode({"type": "WorkerCrashed", "message": reason, "traceback": ""})
        answers: list[str] = []
        for batch in batches(marks, limit=FAIL_BATCH):
            answers += self._answers(
                "job_crash",
                route,
                [value for mark in batch for value in mark],
                attempts_kept=self._settings.attempts_kept,
                failure=failure,
            )
        return answers

    def recover(
        self, route: Route, *, limit: int = 100, elapsed_ms: int | None = None, lease_ms: int | None = None
    ) -> RecoverReply:
        """Takes back up to ``limit`` jobs whose lease ran out.

        ``elapsed_ms``: by the caller's monotonic clock since its own last call for this partition, None on the first.
        If the server's clock moved further than that plus a lease, it jumped, and nothing is taken for one lease.
        """
        now, charged, released, buried, deadline, held, *buried_ids = self._run(
            "job_recover",
            route,
            given_now=self._now(),
            attempts_kept=self._settings.attempts_kept,
            limit=limit,
            lease_ms=lease_ms or int(self._settings.lease_seconds * 1000),
            elapsed="" if elapsed_ms is None else elapsed_ms,
        )
        graves = tuple(job_id.decode(errors="replace") for job_id in buried_ids)
        return RecoverReply(charged, released, buried, moment_or_none(deadline), now, bool(held), graves)

    def promote(self, route: Route, limit: int = WRITE_BATCH) -> PromoteReply:
        """Makes due jobs ready (a lease does so too; this is for pools that nobody leases from now)."""
        now, promoted, next_due = self._run("job_promote", route, given_now=self._now(), limit=min(limit, WRITE_BATCH))
        return PromoteReply(promoted, moment_or_none(next_due), now)

    def park(self, route: Route, leases: Iterable[tuple[str, str, str]]) -> list[str]:
        """Sets jobs (id, token, type) aside that this worker may not run. State or "lost" for each.

        Hosts hear of the types of which nothing was parked before: one that may run them has them back at once.
        """
        answers: list[str] = []
        for batch in batches(leases, limit=WRITE_BATCH):
            told = self._answers("job_park", route, [value for lease in batch for value in lease])
            answers += told[: len(batch)]
            for type_name in told[len(batch) :]:
                with suppress(StoreUnavailable, OutcomeUnknown):  # they look by themselves too, now and then
                    self._news.tell("parked", type_name)
        return answers

    def unpark(self, route: Route, types: Collection[str], *, limit: int | None = None, wakes: bool = True) -> int:
        """Puts parked jobs back in line, of each of these types at most ``limit``; how many. ``wakes`` a waiting
        worker, which may be one that does not know them and parks them again."""
        return sum(
            self._unpark(route, type_name, limit, "1" if wakes else "")
            for type_name in self.parked(route).keys() & set(types)
        )

    def _unpark(self, route: Route, type_name: str, limit: int | None, wakes: str) -> int:
        moved = 0
        while limit is None or moved < limit:
            asked = BATCH if limit is None else min(BATCH, limit - moved)
            count = self._run("job_unpark", route, type=type_name, limit=asked, wakes=wakes)
            moved += count
            if count < asked:
                break
        return moved

    def parked(self, route: Route) -> dict[str, int]:
        """Job type → parked jobs."""
        keys = self._keys(route)
        raw = self._store.read(lambda client: client.hgetall(keys.parked))
        return {name.decode(): whole_number(count) or 0 for name, count in raw.items()}

    def progress(self, lease: LeasedJob, current: float, total: float | None = None, message: str = "") -> None:
        """Stores how far the job is. LeaseLost where it is not ours any more."""
        if self.progress_many(lease.route, [(lease, current, total, message)]):
            raise LeaseLost(f"The lease of job {lease.id} ended or is held by another worker.")

    def progress_many(self, route: Route, told: Iterable[tuple[LeasedJob, float, float | None, str]]) -> list[Lease]:
        """Stores how far the jobs of a partition are; those leases that are not ours any more."""
        lost: list[Lease] = []
        for batch in batches(told, limit=WRITE_BATCH):
            items: list[Any] = []
            for lease, current, total, message in batch:
                items += (lease.id, lease.token, encode_progress(current, total, message[:500]))
            answers = self._answers("job_progress", route, items)
            leases = [(lease.id, lease.token) for lease, *_ in batch]
            lost += [lease for lease, answer in zip(leases, answers, strict=True) if answer == "lost"]
        return lost

    def none_waits(self, routes: Iterable[Route]) -> bool:
        """Whether no job of these partitions is ready or comes due some time."""
        return are_empty(self._store, routes, "ready", "scheduled", "retry_wait")

    def none_comes_due(self, routes: Iterable[Route]) -> bool:
        return are_empty(self._store, routes, "scheduled", "retry_wait")

    def none_is_parked(self, routes: Iterable[Route]) -> bool:
        return are_empty(self._store, routes, "parked")

    def none_is_leased(self, routes: Iterable[Route]) -> bool:
        return are_empty(self._store, routes, "leased")

    def prune(self, route: Route, limit: int = BATCH) -> int:
        """Forgets ended jobs whose retention is over; how many."""
        retention = int(self._settings.retention_seconds * 1000)
        forgotten: list[str] = []
        for line in PRUNED_LINES:
            skip = 0
            while True:
                _, kept, *gone = self._store.run(
                    "job_prune",
                    _PruneKeys(self._keys(route), line),
                    given_now=self._now(),
                    retention=retention,
                    limit=min(limit, BATCH),
                    skip=skip,
                )
                forgotten += (job_id.decode() for job_id in gone)
                skip += kept
                if kept + len(gone) < min(limit, BATCH):
                    break
        for job_id in forgotten:
            if route_in(job_id) is None:
                forget_id(self._store, route, job_id, self._now())
        return len(forgotten)

    def tidy(self, route: Route, gone_seats: Collection[str] = ()) -> int:
        """Drops old voided ids and the grants of workers that are gone; how many things."""
        dropped: int = self._run("partition_tidy", route, list(gone_seats)[:BATCH], given_now=self._now())
        return dropped

    def grant_holders(self, route: Route) -> list[str]:
        """Seats of workers whose last grant is remembered here: see ``worker_of``."""
        keys = self._keys(route)
        raw = self._store.read(lambda client: client.hkeys(keys.grants))
        return [seat.decode() for seat in raw]


class _PruneKeys:
    """The partition's keys with the one line that is pruned."""

    def __init__(self, keys: PartitionKeys, line: str) -> None:
        self._partition = keys
        self.line = keys.index(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)


def _answers_but(
    exceptions: list[Any], batch: Sequence[Completion], groups: Mapping[_Alike, Mapping[int, list[Any]]]
) -> list[str]:
    """The answers in the order of ``batch``; the exceptions are positions (from 1) in the order of ``groups``."""
    sent = [
        (job_id, token)
        for (token, _, _, has_results), runs in groups.items()
        for values in runs.values()
        for job_id in values[:: 2 if has_results else 1]
    ]
    odd = {sent[position - 1]: answer.decode() for position, answer in zip(*[iter(exceptions)] * 2, strict=True)}
    return [odd.get((completion.id, completion.token), "ok") for completion in batch]


def _flat(leases: Iterable[Lease]) -> list[str]:
    return [value for lease in leases for value in lease]
