"""Pools: what stands in line, what serves it, and whether it may be served."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import Route, iso, moment
from jobs.engine.series import Series
from jobs.engine.workers import Workers
from jobs.exceptions import SchedulerError
from jobs.store import codec
from jobs.store.codec import whole_number
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, SettingKeys, partition_keys
from jobs.store.topology import Topology, checked_pool

PLACES = 2**44
"""Places of one priority in the ready line; see lua/include/ready_place.lua."""

COUNTED = ("ready", "scheduled", "retry_wait", "leased", "dead", "blocked", "succeeded", "cancelled", "skipped")


class PoolNotFound(SchedulerError):
    """There is no pool of this name."""

    code = "pool_not_found"


class PoolSettings(msgspec.Struct, kw_only=True):
    """What an operator set for a pool; None = not set."""

    slots: int | None = None
    max_running: int | None = None
    max_pending: int | None = None


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Who paused it, when, why, and until when (None = until somebody resumes it)."""

    by: str
    at: str
    reason: str = ""
    until: str | None = None


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool at one moment. ``slots`` are wanted per worker process; ``slots_actual`` are there, over all workers."""

    name: str
    paused: Pause | None
    slots: int
    slots_actual: int
    workers: int
    max_running: int | None
    max_pending: int | None
    ready: int
    scheduled: int
    retry_wait: int
    leased: int
    dead: int
    oldest_ready_age_seconds: float | None
    predicted_wait_seconds: float | None
    throughput_per_second: float
    blocked: int = 0
    succeeded: int = 0
    cancelled: int = 0
    skipped: int = 0
    parked: int = 0  # of the ready ones: nobody here knows their type

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a pool (CONTRACT section 5)."""
        shown = {name: getattr(self, name) for name in _JSON_FIELDS}
        shown["paused"] = msgspec.to_builtins(self.paused) if self.paused else None
        return shown

    def count(self, state: str) -> int:
        """Jobs in one state."""
        return int(getattr(self, state))


_JSON_FIELDS = Pool.__struct_fields__[: Pool.__struct_fields__.index("blocked")]
_decode_settings = msgspec.json.Decoder(PoolSettings).decode
_decode_pause = msgspec.json.Decoder(Pause).decode


class Pools:
    """Raises PoolNotFound for names that were never used, OptionInvalid for impossible ones."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, topology: Topology, workers: Workers) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._topology = topology
        self._workers = workers
        self._series = Series(store)
        self._keys = SettingKeys(store.namespace)

    def all(self) -> list[Pool]:
        """All pools, by name. Costs the same whatever they hold."""
        names = self._topology.pools()
        return self._read(names) if names else []

    def get(self, name: str) -> Pool:
        self._require(name)
        return self._read([name])[0]

    def configure(self, name: str, *, slots: int | None = None) -> None:
        """Sets the slots per worker process, None = back to what is declared. Creates the pool."""
        self._topology.ensure(checked_pool(name))
        stored = self._stored_settings().get(name, PoolSettings())
        stored.slots = slots
        self._store.call(lambda client: client.hset(self._keys.pools, name, msgspec.json.encode(stored)))

    def configured(self) -> dict[str, int]:
        """Slots that were set by people: pool → slots."""
        stored = self._stored_settings()
        return {name: settings.slots for name, settings in stored.items() if settings.slots is not None}

    def slots(self, name: str) -> int:
        """Slots per worker process: what an operator set, else the settings', else the default."""
        return self._wanted_slots(name, self._stored_settings())

    def pause(self, name: str, *, by: str, reason: str = "", until: datetime | None = None) -> None:
        """From when this returns, nothing new of the pool starts; what runs goes on. Kept until resumed or
        ``until``."""
        self._require(name)
        now_ms = self._server_now_ms()
        pause = Pause(by=by, at=_iso_ms(now_ms), reason=reason, until=iso(until))
        until_ms = int(until.timestamp() * 1000) if until else ""
        for keys in self._partition_keys(name):
            self._store.run("pool_pause", keys, paused=msgspec.json.encode(pause), until_ms=until_ms)

    def resume(self, name: str) -> None:
        """Ends the pause. No error where there is none."""
        self._require(name)
        for keys in self._partition_keys(name):
            self._store.run("pool_resume", keys)

    def _partition_keys(self, name: str) -> list[PartitionKeys]:
        return [partition_keys(self._store.namespace, route) for route in self._topology.partitions(name)]

    def _require(self, name: str) -> None:
        if not self._topology.has(name):
            raise PoolNotFound(f"There is no pool {name!r}.", fix="`manage.py pools list` names them.")

    def _read(self, names: Sequence[str]) -> list[Pool]:
        routes = [route for name in names for route in self._topology.partitions(name)]
        facts = dict(zip(routes, self._read_partitions(routes), strict=True))
        now_ms = self._server_now_ms()
        wanted = self._stored_settings()
        rates = self._series.throughput(routes, now_ms)
        alive = [worker for worker in self._workers.all() if worker.alive and not worker.is_host]
        pools = []
        for name in names:
            of_pool = [facts[route] for route in routes if route.pool == name]
            rate = sum(rates[route] for route in routes if route.pool == name)
            counts = {state: sum(part.counts[state] for part in of_pool) for state in COUNTED}
            parked = sum(part.parked for part in of_pool)
            counts["ready"] += parked
            serving = [worker for worker in alive if name in worker.pools]
            ages = [now_ms - part.oldest_ready_at for part in of_pool if part.oldest_ready_at]
            settings = wanted.get(name, PoolSettings())
            pools.append(
                Pool(
                    name=name,
                    paused=next((part.pause for part in of_pool if part.is_paused_at(now_ms)), None),
                    slots=self._wanted_slots(name, wanted),
                    slots_actual=sum(worker.pools[name] for worker in serving),
                    workers=len(serving),
                    max_running=settings.max_running,
                    max_pending=settings.max_pending,
                    oldest_ready_age_seconds=round(max(0, *ages, 0) / 1000, 3) if ages else None,
                    predicted_wait_seconds=round(counts["ready"] / rate, 3) if rate > 0 else None,
                    throughput_per_second=round(rate, 3),
                    parked=parked,
                    **counts,
                )
            )
        return pools

    def _read_partitions(self, routes: Sequence[Route]) -> list[_PartitionFacts]:
        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                keys = partition_keys(self._store.namespace, route)
                for state in COUNTED:
                    pipeline.zcard(keys.index(state))
                pipeline.hgetall(keys.parked)
                pipeline.hmget(keys.control, "paused", "paused_until")
                pipeline.zrange(keys.ready, 0, 0)
                pipeline.zrange(keys.ready, -1, -1, withscores=True)
            return list(pipeline.execute())

        replies = self._store.read(send)
        width = len(COUNTED) + 4
        facts, ends = [], []
        for position in range(len(routes)):
            *counts, parked, control, first, last = replies[position * width : (position + 1) * width]
            facts.append(_PartitionFacts(dict(zip(COUNTED, counts, strict=True)), parked, control))
            ends.append((first[0], last[0][1]) if first and last else None)
        for part, ready_at in zip(facts, self._oldest_ready(routes, ends), strict=True):
            part.oldest_ready_at = ready_at
        return facts

    def _oldest_ready(self, routes: Sequence[Route], ends: Sequence[tuple[bytes, float] | None]) -> list[int]:
        """Since when the longest waiting job of each line is ready, server ms; 0 where there is none.

        Within a priority the first waits longest. Looked at are the first of all and the first of the lowest priority,
        which is the one that may starve.
        """
        lines = [
            (partition_keys(self._store.namespace, route), *end)
            for route, end in zip(routes, ends, strict=True)
            if end is not None
        ]
        if not lines:
            return [0] * len(routes)

        def find_lowest(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for keys, _, last_place in lines:
                pipeline.zrangebyscore(keys.ready, last_place - last_place % PLACES, "+inf", start=0, num=1)
            return list(pipeline.execute())

        pairs = [
            (keys, job_id)
            for (keys, first, _), lowest in zip(lines, self._store.read(find_lowest), strict=True)
            for job_id in (first, lowest[0] if lowest else first)
        ]

        def read_both(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for keys, job_id in pairs:
                pipeline.hget(keys.states, job_id)
                pipeline.hget(keys.bodies, job_id)
            return list(pipeline.execute())

        replies = iter(self._store.read(read_both))
        since = [codec.ready_since(next(replies), next(replies)) for _ in pairs]
        oldest = iter([min(filter(None, since[at : at + 2]), default=0) for at in range(0, len(since), 2)])
        return [0 if end is None else next(oldest) for end in ends]

    def _stored_settings(self) -> dict[str, PoolSettings]:
        raw: Any = self._store.read(lambda client: client.hgetall(self._keys.pools))
        found = {}
        for name, stored in raw.items():
            try:
                found[name.decode()] = _decode_settings(stored)
            except msgspec.MsgspecError:
                continue
        return found

    def _wanted_slots(self, name: str, stored: dict[str, PoolSettings]) -> int:
        slots = stored.get(name, PoolSettings()).slots
        return self._settings.pools.get(name, self._settings.slots) if slots is None else slots

    def _server_now_ms(self) -> int:
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now


class _PartitionFacts:
    """What one partition says of itself."""

    def __init__(self, counts: dict[str, int], parked: dict[bytes, bytes], control: list[bytes | None]) -> None:
        self.counts = counts
        self.parked = sum(whole_number(count) or 0 for count in parked.values())
        self.oldest_ready_at = 0
        self._paused_until = whole_number(control[1])
        try:
            self.pause = _decode_pause(control[0]) if control[0] else None
        except msgspec.MsgspecError:
            self.pause = Pause(by="unknown", at="")

    def is_paused_at(self, now_ms: int) -> bool:
        return self.pause is not None and (self._paused_until is None or now_ms < self._paused_until)


def _iso_ms(milliseconds: int) -> str:
    return iso(moment(milliseconds)) or ""
