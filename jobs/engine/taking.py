"""How workers come by jobs: by asking, by waiting, and by both at once.

Each call is one script over one partition, and each may be sent again with the same token: it finds what it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import LeasedJob, Route
from jobs.engine.batches import BATCH, batches
from jobs.store.codec.jobs import CORRUPT_ERROR
from jobs.store.codec.leases import LeaseDecoder
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.scripts import Call

FAIL_BATCH = 100
"""Most items of a call that ends attempts without success, and writes the history of each job: about 10 ms."""

_STANDING = "\nstanding"


class Failure(NamedTuple):
    """An attempt that did not succeed, and what is to become of the job. ``error``: JSON of type, message,
    traceback."""

    id: str | bytes  # bytes where it is no text: the index went bad
    token: str
    type: str
    started_at: int
    outcome: Literal["retry", "dead", "snooze", "cancelled"]
    delay_ms: int = 0
    priority: int = 0
    error: bytes | None = None


class LeaseReply(NamedTuple):
    """``jobs`` are ours until ``now`` + lease (server ms). ``next_due``: when a waiting job is due, ms or None.
    ``corrupt``: jobs whose stored bytes could not be read and that went to the DLQ."""

    jobs: list[LeasedJob]
    corrupt: int
    now: int
    next_due: int | None
    ready_left: int
    paused: bool
    full: bool = False  # as many run as may run in this pool


def worker_of(seat: str) -> str:
    """Whose seat it is. A worker's last grant is remembered once for what it asks at the moment, and once for what it
    has asked for in advance: each may be lost while the other is answered."""
    return seat.partition("\n")[0]


class Taking:
    """See the module; the part of ``Leases`` that workers wait for.

    ``bundle_from``: a lease call that takes so many jobs which nobody touched before writes them down as one bundle.
    """

    bundle_from = 20

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    def lease(self, route: Route, *, worker: str, token: str, limit: int, lease_ms: int) -> LeaseReply:
        """Takes up to ``limit`` ready jobs, by priority, then order of arrival. Makes ready what is due first."""
        call = self._lease_call(route, worker, token, limit, lease_ms, seat=worker)
        return self._leased(route, token, self._store.run("job_lease", call.keys, **call.arguments))

    def wait_and_lease(
        self, route: Route, timeout: float, *, worker: str, token: str, limit: int, lease_ms: int
    ) -> LeaseReply:
        """Blocks until the partition may have work, at most ``timeout`` seconds; then leases as ``lease`` does, without
        another way to the server. It is not known when exactly it did: the reply's ``now`` tells by the server's clock.

        One at a time for a worker and partition. What may still come of it is had back with ``recall``.
        """
        call = self._lease_call(route, worker, token, limit, lease_ms, seat=worker + _STANDING)
        reply = self._store.wait_and_run(self._keys(route).wake, timeout, "job_lease", call)
        return self._leased(route, token, reply)

    @property
    def can_stand(self) -> bool:
        """Whether ``wait_and_lease`` saves a way to the server here."""
        return self._store.waits_ahead

    def recall(self, route: Route, *, worker: str, token: str) -> LeaseReply:
        """What ``wait_and_lease`` has taken under this token. If nothing, then it will not take anything any more."""
        call = self._lease_call(route, worker, token, 0, 0, seat=worker + _STANDING)
        return self._leased(route, token, self._store.run("job_lease", call.keys, **call.arguments))

    def wait_for_work(self, routes: Sequence[Route], timeout: float) -> Route | None:
        """Blocks until one of the partitions may have work, at most ``timeout`` seconds; which one woke us."""
        by_key = {self._keys(route).wake: route for route in routes}
        key = self._store.wait_for_token(list(by_key), timeout)
        return by_key[key] if key is not None else None

    def pass_on(self, route: Route) -> None:
        """Wakes another in the place of one who was woken and takes nothing."""
        self._store.call(lambda client: client.rpush(self._keys(route).wake, "1"))

    def fail(self, route: Route, failures: Sequence[Failure]) -> list[str]:
        """For each the state that the job is in now, or "lost"."""
        answers: list[str] = []
        for batch in batches(failures, limit=FAIL_BATCH):
            items = [b"" if value is None else value for failure in batch for value in failure]
            answers += self._answers("job_fail", route, items, attempts_kept=self._settings.attempts_kept)
        return answers

    def _lease_call(self, route: Route, worker: str, token: str, limit: int, lease_ms: int, *, seat: str) -> Call:
        return Call(
            self._keys(route),
            {
                "given_now": self._now(),
                "worker": worker,
                "token": token,
                "limit": min(limit, BATCH),
                "lease_ms": lease_ms,
                "attempts_kept": self._settings.attempts_kept,
                "bundle_from": self.bundle_from,
                "seat": seat,
            },
        )

    def _leased(self, route: Route, token: str, raw: list[Any]) -> LeaseReply:
        now, next_due, left, held_up, corrupt, records, heads = raw[:7]
        jobs: list[LeasedJob] = []
        unreadable: list[Failure] = []
        decode = LeaseDecoder(route, token, now).decode
        record_at, head_at, head = _by_position(records), _by_position(heads), b""
        for position, (job_id, body) in enumerate(zip(raw[7::2], raw[8::2], strict=True), start=1):
            head = head_at.get(position, head)
            try:
                jobs.append(decode(job_id, record_at.get(position), head, body))
            except ValueError as error:
                unreadable.append(_unreadable(job_id, token, now, str(error)))
        if unreadable:
            self.fail(route, unreadable)
        return LeaseReply(
            jobs,
            corrupt + len(unreadable),
            now,
            moment_or_none(next_due),
            left,
            paused=held_up == b"1",
            full=held_up == b"full",
        )

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now

    def _keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)

    def _run(self, name: str, route: Route, items: Sequence[Any] = (), **arguments: Any) -> Any:
        return self._store.run(name, self._keys(route), items, **arguments)

    def _answers(self, name: str, route: Route, items: Sequence[Any], **arguments: Any) -> list[str]:
        reply = self._run(name, route, items, given_now=self._now(), **arguments)
        return [answer.decode() for answer in reply]


def _by_position(told: list[Any]) -> dict[int, bytes]:
    """Position, value, position, value, … as a table."""
    return dict(zip(told[::2], told[1::2], strict=True)) if told else {}


def moment_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _unreadable(job_id: bytes, token: str, now: int, reason: str) -> Failure:
    error = msgspec.json.encode({**CORRUPT_ERROR, "message": f"What is stored of this job cannot be read: {reason}"})
    return Failure(job_id, token, "", now, "dead", error=error)
