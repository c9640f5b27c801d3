"""How many jobs were ready in each pool, and when: once a minute for a day, once in half an hour for 30 days.

Worker hosts note it, whichever comes first in a minute. Where none ran there is no note, and nobody knows.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.core.clock import Clock
from jobs.core.job import moment
from jobs.engine.lines import are_empty
from jobs.store.connection import Store
from jobs.store.keys import BacklogKeys, partition_keys
from jobs.store.topology import Topology

MINUTE, HALF_HOUR = 60, 1800  # seconds
FINE_MINUTES = 1440
"""As far back it is told by the minute; beyond, by the half hour."""

MOST_NOTES = 1500
"""Of one reading: a day of minutes, or 30 days of half hours."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[str, int]).decode


class Noted(NamedTuple):
    """The ready jobs at one moment; pools without any are left out."""

    at: datetime
    seconds: int  # until the next is due
    ready: dict[str, int]


class Backlog:
    def __init__(self, store: Store, clock: Clock, topology: Topology) -> None:
        self._store = store
        self._clock = clock
        self._topology = topology
        self._keys = BacklogKeys(store.namespace)

    def note(self) -> bool:
        """Notes how it is now; False where this minute is noted already."""
        counts, routes = Counter[str](), self._topology.partitions()
        if not are_empty(self._store, routes, "ready", "throttled", "parked"):
            if self._is_noted():
                return False
            for route in routes:
                counts[route.pool] += self._store.run("line_count", partition_keys(self._store.namespace, route))
        now = self._clock.now_ms()
        reply = self._store.run("backlog_note", self._keys, given_now="" if now is None else now, counts=_pack(+counts))
        return bool(reply)

    def _is_noted(self) -> bool:
        """Before all pools are looked at: another host may have been here."""
        newest: Any = self._store.read(lambda client: client.xrevrange(self._keys.minutes, count=1))
        return bool(newest) and self._now_ms() // (MINUTE * 1000) <= int(newest[0][0].partition(b"-")[0]) // (
            MINUTE * 1000
        )

    def _now_ms(self) -> int:
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def notes(self, minutes: float = 60) -> list[Noted]:
        """What was noted in the last ``minutes``, oldest first."""
        fine = minutes <= FINE_MINUTES
        stream, seconds = (self._keys.minutes, MINUTE) if fine else (self._keys.halves, HALF_HOUR)
        since = self._now_ms() - int(minutes * 60_000)

        def read(client: Any) -> Any:
            return client.xrange(stream, min=str(max(0, since)), count=MOST_NOTES)

        return [_noted(entry, fields, seconds) for entry, fields in self._store.read(read)]


def _noted(entry: bytes, fields: dict[bytes, bytes], seconds: int) -> Noted:
    try:
        ready = _unpack(fields.get(b"ready", b""))
    except msgspec.MsgspecError:
        ready = {}
    return Noted(moment(int(entry.partition(b"-")[0])), seconds, ready)
