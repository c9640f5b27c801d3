"""Upkeep of limits: places that nobody gave back, jobs that stand aside and in no line, what is remembered in vain.

What looks forgotten may merely be on its way: whoever looks does so twice before acting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.core.job import Route
from jobs.core.limits import TypeLimits
from jobs.core.states import JobState
from jobs.engine.batches import READ_BATCH, batches
from jobs.engine.limits.records import PAGE, Lease, LimitRecords, Waiter, limits_of
from jobs.engine.lines import are_empty
from jobs.registry import registry
from jobs.store.codec.bodies import decode_body
from jobs.store.codec.ids import parse_route
from jobs.store.codec.records import decode_record
from jobs.store.keys import PartitionKeys


class LimitUpkeep:
    """See the module."""

    def __init__(self, records: LimitRecords) -> None:
        self._records = records

    def waited_for(self) -> list[str]:
        """Job types whose limits hold somebody back, or did so until lately."""
        raw: Any = self._records.store.read(lambda client: client.hkeys(self._records.limited))
        return sorted(name.decode() for name in raw)

    def forget_if_idle(self, type_name: str) -> bool:
        """Nobody waits for this type's limits any more: no service needs to look. Whether that is so."""
        keys = self._records.keys(type_name)

        def waits(client: Any) -> bool:
            return bool(client.hlen(keys.waiters) or client.zcard(keys.called))

        if self._records.store.read(waits):
            return False
        self._records.store.call(lambda client: client.hdel(self._records.limited, type_name))
        if self._records.store.read(waits):  # somebody came in between
            self._records.store.call(lambda client: client.hset(self._records.limited, type_name, 1))
            return False
        return True

    def forgotten(self, limits: TypeLimits) -> set[Lease]:
        """Places whose lease is over and that nobody gave back, or not yet: see twice before you free them."""
        by_route: defaultdict[str, list[Lease]] = defaultdict(list)
        for field, holding in self._records.holders(limits.type):
            job_id, _, token = field.rpartition("\n")
            if token:
                by_route[holding.partition("\n")[0].rstrip()].append((job_id, token))
        over: set[Lease] = set()
        for text, leases in by_route.items():
            route = parse_route(text)
            for batch in batches(leases):
                over |= self._over(route, batch) if route else set(batch)
        return over

    def _over(self, route: Route, leases: Sequence[Lease]) -> set[Lease]:
        keys = self._records.partition(route)
        ids = [job_id for job_id, _ in leases]
        records = self._records.store.read(lambda client: client.hmget(keys.states, ids))
        return {lease for lease, raw in zip(leases, records, strict=True) if not _is_held(raw, lease[1])}

    def strays(self, route: Route) -> list[str]:
        """Jobs that were set aside and stand in no line that anybody serves, in their order: see twice before you put
        them back."""
        keys = self._records.partition(route)
        found: list[str] = []
        start = 0
        while ids := self._records.store.read(lambda client: client.zrange(keys.throttled, start, start + PAGE - 1)):  # noqa: B023
            unserved = self._unserved(keys, ids)
            found += [job_id.decode() for job_id in ids if job_id in unserved]
            start += PAGE
        return found

    def _unserved(self, keys: PartitionKeys, ids: Sequence[bytes]) -> set[bytes]:
        by_type: defaultdict[str, list[bytes]] = defaultdict(list)
        for batch in batches(ids, limit=READ_BATCH):
            bodies = self._records.store.read(lambda client: client.hmget(keys.bodies, batch))  # noqa: B023
            for job_id, body in zip(batch, bodies, strict=True):
                by_type[_type_in(body)].append(job_id)
        unserved: set[bytes] = set()
        for type_name, of_type in by_type.items():
            if type_name and type_name not in registry:
                continue  # whoever knows its limits will see to it
            waiters = self._records.waiters(type_name, of_type)
            limits = limits_of(type_name)
            unserved |= {
                job_id for job_id, waiter in zip(of_type, waiters, strict=True) if not _is_served(limits, waiter)
            }
        return unserved

    def none_stands_aside(self, routes: Iterable[Route]) -> bool:
        return are_empty(self._records.store, routes, "throttled")

    def put_back(self, route: Route, ids: Iterable[str]) -> int:
        """Puts jobs that were set aside back in line, in this order; how many."""
        return sum(answer != b"gone" for _, answer in self._records.admit(route, list(ids)))

    def tidy(self, limits: TypeLimits) -> int:
        """Drops what is remembered of rate keys that have not been used for a whole period; how many."""
        dropped, cursor = 0, b"0"
        while True:
            cursor, found = self._records.store.run(
                "limit_tidy",
                self._records.keys(limits.type),
                given_now=self._records.now(),
                period=limits.rate.period_ms if limits.rate else 0,
                cursor=cursor,
                count=PAGE,
            )
            dropped += int(found)
            if cursor == b"0":
                return dropped


def _is_held(raw_record: bytes | None, token: str) -> bool:
    try:
        record = decode_record(raw_record or b"")
    except ValueError:
        return False
    return record.state == JobState.LEASED and record.token == token


def _type_in(body: bytes | None) -> str:
    try:
        return decode_body(body or b"").type
    except ValueError:
        return ""


def _is_served(limits: TypeLimits | None, waiter: Waiter | None) -> bool:
    """Whether the job stands in the line of a limit that still exists."""
    if limits is None or waiter is None:
        return False
    return (limits.concurrency if waiter.line == "c" else limits.rate) is not None
