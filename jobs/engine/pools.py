"""Pools: what stands in line, what serves it, and whether it may be served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.autoscale import AutoscaleRule
from jobs.core.clock import Clock
from jobs.core.job import Route, moment
from jobs.core.pause import Pause, Scope
from jobs.core.wording import did_you_mean
from jobs.engine.bundles import leased_count
from jobs.engine.caps import Caps, Pending
from jobs.engine.pauses import Pauses
from jobs.engine.pool_pace import Pace, PartitionFacts, expected_wait
from jobs.engine.series import Series
from jobs.engine.workers import Workers
from jobs.exceptions import SchedulerError
from jobs.store.codec.jobs import ready_since
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys, partition_keys
from jobs.store.topology import Topology, checked_pool

PLACES = 2**44
"""Places of one priority in the ready line; see lua/include/ready_place.lua."""

COUNTED = (
    "ready",
    "scheduled",
    "retry_wait",
    "leased",
    "dead",
    "blocked",
    "succeeded",
    "cancelled",
    "skipped",
    "throttled",
)


class PoolNotFound(SchedulerError):
    """There is no pool of this name."""

    code = "pool_not_found"


class Autoscale(AutoscaleRule, frozen=True, kw_only=True):
    """By what a machine sizes the pool. ``dry_run``: its decisions are recorded and not carried out."""

    dry_run: bool = False


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What was set for a pool; None = not set. ``scaled_to``: the slots that autoscaling decided on last."""

    slots: int | None = None
    max_running: int | None = None
    max_pending: int | None = None
    autoscale: Autoscale | None = None
    scaled_to: int | None = None

    @property
    def is_autoscaled(self) -> bool:
        """Whether a machine decides over the slots."""
        return self.autoscale is not None and not self.autoscale.dry_run

    def wanted_slots(self, declared: int) -> int:
        """Slots per worker process; ``declared``: where nobody has set any."""
        chosen = declared if self.slots is None else self.slots
        rule = self.autoscale
        if rule is None or rule.dry_run:
            return chosen
        chosen = chosen if self.scaled_to is None else self.scaled_to
        return min(max(chosen, rule.min_slots), rule.max_slots)


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
    hosts_paused: bool = False  # each live host that serves it, on its own
    throttled: int = 0  # of the ready ones: a limit of their type holds them back
    run_seconds: float | None = None  # mean time of an attempt lately; None before the first has ended
    enqueued_per_second: float = 0.0
    clock_jumped_at: datetime | None = None  # when the server's clock last went on by more than a lease at once

    @property
    def load(self) -> float | None:
        """(ready + running) ÷ slots: beyond 1 there is more to do than can run. None where there are no slots.

        Without parked jobs: more slots would not run them.
        """
        return round((self.ready - self.parked + self.leased) / self.slots_actual, 3) if self.slots_actual else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a pool (CONTRACT section 5)."""
        shown = {name: getattr(self, name) for name in _JSON_FIELDS}
        shown["paused"] = msgspec.to_builtins(self.paused) if self.paused else None
        return shown

    def count(self, state: str) -> int:
        """Jobs in one state."""
        return int(getattr(self, state))


_JSON_FIELDS = Pool.__struct_fields__[: Pool.__struct_fields__.index("blocked")]


class Pools:
    """Raises PoolNotFound for names that were never used, OptionInvalid for impossible ones."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        topology: Topology,
        workers: Workers,
        pauses: Pauses,
        series: Series,
        caps: Caps,
        pending: Pending,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._topology = topology
        self._workers = workers
        self._pauses = pauses
        self._series = series
        self._caps = caps
        self._pending = pending
        self._keys = SettingKeys(store.namespace)

    def all(self) -> list[Pool]:
        """All pools, by name. Costs the same whatever they hold."""
        names = self._topology.pools()
        return list(self._store.once("pools", lambda: self._read(names))) if names else []

    def get(self, name: str) -> Pool:
        self.require(name)
        return self._read([name])[0]

    def configure(self, name: str, **values: Any) -> None:
        """Sets some of ``PoolSettings``, None = not set any more. Creates the pool; workers are told at once."""
        self._topology.ensure(checked_pool(name))
        checked = msgspec.convert(values, PoolSettings)
        items: list[Any] = []
        for setting in values:
            value = getattr(checked, setting)
            items += (f"{name}:{setting}", b"" if value is None else msgspec.json.encode(value))
        if "autoscale" in values and not checked.is_autoscaled:
            items += (f"{name}:scaled_to", b"")  # a machine that takes over again begins with what people set
        self._store.run("pool_set", self._keys, items)
        if "max_running" in values:
            self._caps.set(name, checked.max_running)
        self._pending.forget()

    def settings(self) -> dict[str, PoolSettings]:
        """All that was set: pool → settings."""
        raw: Any = self._store.read(lambda client: client.hgetall(self._keys.pools))
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for field, stored in raw.items():
            name, _, setting = field.decode(errors="replace").partition(":")
            found[name][setting] = stored
        return {name: _readable(stored) for name, stored in found.items()}

    def configured(self) -> dict[str, int]:
        """Slots where they are not as declared: pool → slots per worker process."""
        settings = self.settings()
        chosen = (name for name, stored in settings.items() if stored.slots is not None or stored.is_autoscaled)
        return {name: self._wanted_slots(name, settings) for name in chosen}

    def slots(self, name: str) -> int:
        """Slots per worker process: what autoscaling or an operator set, else the settings', else the default."""
        return self._wanted_slots(name, self.settings())

    def pause(self, name: str, *, by: str, reason: str = "", until: datetime | None = None) -> Pause | None:
        """See ``Pauses.pause``."""
        self.require(name)
        return self._pauses.pause(Scope("pool", name), by=by, reason=reason, until=until)

    def resume(self, name: str) -> Pause | None:
        """See ``Pauses.resume``."""
        self.require(name)
        return self._pauses.resume(Scope("pool", name))

    def require(self, name: str) -> None:
        """PoolNotFound for a name that was never used."""
        if not self._topology.has(name):
            where = "`manage.py pools list` names them."
            fix = did_you_mean(name, self._topology.pools(), none=where, far=where)
            raise PoolNotFound(f"There is no pool {name!r}.", fix=fix)

    def _read(self, names: Sequence[str]) -> list[Pool]:
        routes = [route for name in names for route in self._topology.partitions(name)]
        facts = dict(zip(routes, self._read_partitions(routes), strict=True))
        now_ms = self._pauses.now_ms()
        paused = self._pauses.stored().at(now_ms)
        wanted = self.settings()
        recent = self._series.recent(routes, now_ms)
        alive = [worker for worker in self._workers.all() if worker.alive and not worker.is_host]
        pools = []
        for name in names:
            of_pool = [facts[route] for route in routes if route.pool == name]
            pace = Pace.of([recent[route] for route in routes if route.pool == name], of_pool)
            counts = {state: sum(part.counts[state] for part in of_pool) for state in COUNTED}
            parked = sum(part.parked for part in of_pool)
            jumped = max((part.clock_jumped_at for part in of_pool), default=0)
            counts["ready"] += parked + counts["throttled"]
            serving = [worker for worker in alive if name in worker.pools]
            ages = [now_ms - part.oldest_ready_at for part in of_pool if part.oldest_ready_at]
            settings = wanted.get(name, PoolSettings())
            oldest_age = max(0, *ages, 0) / 1000 if ages else None
            slots_actual = sum(worker.pools[name] for worker in serving)
            held = [(worker.paused.until_ms if worker.paused else 0, worker.pools[name]) for worker in serving]
            held_until = min((until for until, _ in held), default=0)  # when the first host goes on
            usable = sum(slots for until, slots in held if until == held_until)
            pools.append(
                Pool(
                    name=name,
                    paused=paused.pools.get(name),
                    slots=self._wanted_slots(name, wanted),
                    slots_actual=slots_actual,
                    workers=len(serving),
                    max_running=settings.max_running,
                    max_pending=settings.max_pending,
                    oldest_ready_age_seconds=None if oldest_age is None else round(oldest_age, 3),
                    predicted_wait_seconds=expected_wait(
                        waiting=counts["ready"] - parked,
                        parked=parked,
                        slots=usable if settings.max_running is None else min(usable, settings.max_running),
                        pace=pace,
                        oldest_age=oldest_age or 0.0,
                        paused_until=max(paused.pool_until_ms(name), held_until),
                        now_ms=now_ms,
                    ),
                    throughput_per_second=round(pace.rate, 3),
                    parked=parked,
                    hosts_paused=held_until > 0,
                    run_seconds=pace.run_seconds,
                    enqueued_per_second=round(pace.coming, 3),
                    clock_jumped_at=moment(jumped) if jumped else None,
                    **counts,
                )
            )
        return pools

    def _read_partitions(self, routes: Sequence[Route]) -> list[PartitionFacts]:
        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                keys = partition_keys(self._store.namespace, route)
                for state in COUNTED:
                    pipeline.zcard(keys.index(state))
                pipeline.hvals(keys.bundled)
                pipeline.hgetall(keys.parked)
                pipeline.hmget(keys.control, "run_ms", "clock_alarm")
                pipeline.zrange(keys.ready, 0, 0)
                pipeline.zrange(keys.ready, -1, -1, withscores=True)
            return list(pipeline.execute())

        replies = self._store.read(send)
        width = len(COUNTED) + 5
        facts, ends = [], []
        for position in range(len(routes)):
            *sizes, bundled, parked, control, first, last = replies[position * width : (position + 1) * width]
            counts = dict(zip(COUNTED, sizes, strict=True))
            counts["leased"] = leased_count(counts["leased"], bundled)
            facts.append(PartitionFacts(counts, parked, *control))
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
        since = [ready_since(next(replies), next(replies)) for _ in pairs]
        oldest = iter([min(filter(None, since[at : at + 2]), default=0) for at in range(0, len(since), 2)])
        return [0 if end is None else next(oldest) for end in ends]

    def _wanted_slots(self, name: str, stored: Mapping[str, PoolSettings]) -> int:
        declared = self._settings.pools.get(name, self._settings.slots)
        return stored.get(name, PoolSettings()).wanted_slots(declared)


def _readable(stored: Mapping[str, bytes]) -> PoolSettings:
    """The settings that can be read; what cannot counts as not set."""
    found: dict[str, Any] = {}
    for setting, value in stored.items():
        try:
            decoded = {setting: msgspec.json.decode(value)}
            msgspec.convert(decoded, PoolSettings)
        except msgspec.MsgspecError:
            continue
        found |= decoded
    return msgspec.convert(found, PoolSettings)
