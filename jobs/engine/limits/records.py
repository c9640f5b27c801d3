"""What is stored of limits: how it is read, and how scripts are called on it. The rooms of this package share it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from jobs.core.clock import Clock
from jobs.core.job import Route
from jobs.core.limits import TypeLimits
from jobs.engine.batches import batches
from jobs.registry import registry
from jobs.store.connection import Store
from jobs.store.keys import LimitKeys, PartitionKeys, SettingKeys, partition_keys

CALL_BATCH = 250
"""Most jobs set aside or put back in one call: each is moved by itself."""

PAGE = 500

Lease = tuple[str, str]
"""Job id and token."""


class Waiter(msgspec.Struct, array_like=True):
    """A job that waits, as ``limit_wait.lua`` packs it."""

    route: str
    concurrency_key: str
    rate_key: str
    order: str
    line: str  # c or r


_decode_waiter = msgspec.msgpack.Decoder(Waiter).decode


def limits_of(type_name: str) -> TypeLimits | None:
    """What the code of this process declares for a job type; None where it has no limits or is not known here."""
    return registry.get(type_name).limits if type_name in registry else None


class LimitRecords:
    """See the module."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self.limited = SettingKeys(store.namespace).limited  # hash: types whose limits hold somebody back

    def keys(self, type_name: str) -> LimitKeys:
        return LimitKeys(self.store.namespace, type_name)

    def partition(self, route: Route) -> PartitionKeys:
        return partition_keys(self.store.namespace, route)

    def now(self) -> Any:
        """What a script is told of the time: "" where it is to ask the server."""
        now = self._clock.now_ms()
        return "" if now is None else now

    def now_ms(self) -> int:
        now = self._clock.now_ms()
        return self.store.time_ms() if now is None else now

    def run(self, name: str, limits: TypeLimits, items: Sequence[Any] = (), **arguments: Any) -> Any:
        """A script that must know both limits of the type."""
        rate = limits.rate
        return self.store.run(
            name,
            self.keys(limits.type),
            items,
            given_now=self.now(),
            concurrency="" if limits.concurrency is None else limits.concurrency,
            starts=rate.starts if rate else "",
            period=rate.period_ms if rate else "",
            **arguments,
        )

    def holders(self, type_name: str) -> Iterable[tuple[str, str]]:
        """Who has a place ("<job id>\\n<token>"), and where ("<route>\\n<key>")."""
        keys = self.keys(type_name)
        cursor = 0
        while True:
            cursor, found = self.store.read(lambda client: client.hscan(keys.holders, cursor, count=PAGE))  # noqa: B023
            for field, holding in found.items():
                yield field.decode(), holding.decode()
            if cursor == 0:
                return

    def waiters(self, type_name: str, ids: Sequence[str | bytes]) -> list[Waiter | None]:
        """These jobs as they wait; None for each that does not."""
        keys = self.keys(type_name)
        raw = self.store.read(lambda client: client.hmget(keys.waiters, list(ids)))
        return [_waiter_in(packed) for packed in raw]

    def admit(self, route: Route, ids: Sequence[Any]) -> list[tuple[Any, bytes]]:
        """Puts jobs that were set aside back in line: each id with "ready", or why it does not come."""
        answers: list[tuple[Any, bytes]] = []
        for batch in batches(ids, limit=CALL_BATCH):
            answers += zip(batch, self.store.run("job_admit", self.partition(route), batch), strict=True)
        return answers


def _waiter_in(packed: bytes | None) -> Waiter | None:
    try:
        return _decode_waiter(packed) if packed else None
    except msgspec.MsgspecError:
        return None
