"""Leave to start: what may run at once under one key, how often it may start, and who waits for that.

``docs/decisions/0008-permits.md`` says how the parts work together. Every verb may be repeated, by anybody.
All raise StoreUnavailable or OutcomeUnknown where the server is away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any, Literal, NamedTuple

import msgspec

from jobs.core.clock import Clock
from jobs.core.job import Job, LeasedJob, Route
from jobs.core.limits import TypeLimits
from jobs.core.states import JobState
from jobs.engine.batches import READ_BATCH, batches
from jobs.registry import registry
from jobs.store.codec.bodies import decode_body
from jobs.store.codec.ids import parse_route
from jobs.store.codec.records import decode_record
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import LimitKeys, PartitionKeys, SettingKeys, partition_keys
from jobs.store.topology import Topology

CALL_BATCH = 250
"""Most jobs set aside or put back in one call: each is moved by itself."""

MOST_REPLACED = 100
"""Calls in a row that may be in vain before whoever made them stops; the last one runs out by itself."""

SHOWN_HOLDERS = 5
"""Of those that have the places of a key, so many are named."""

PAGE = 500

Lease = tuple[str, str]
"""Job id and token."""

Kind = Literal["concurrency", "rate"]


class Leave(NamedTuple):
    """What became of a request for leave. ``held``: with the limit that holds each back. ``rest``: beyond what was
    wanted, nothing was decided about them."""

    go: list[LeasedJob]
    held: list[tuple[LeasedJob, Kind]]
    rest: list[LeasedJob]


class Hold(NamedTuple):
    """A limit that holds a job back now. ``limit``: 5 or "100/m". ``holders``: up to 5 ids of jobs that have its
    places. ``free_in_seconds``: when a rate lets the next one start."""

    kind: Literal["max_running", "concurrency", "rate"]
    key: str
    limit: int | str
    holders: list[str]
    free_in_seconds: float | None = None


class _Waiter(msgspec.Struct, array_like=True):
    """As ``limit_wait.lua`` packs it."""

    route: str
    concurrency_key: str
    rate_key: str
    order: str
    line: str  # c or r


_decode_waiter = msgspec.msgpack.Decoder(_Waiter).decode
_LINES: dict[str, str] = {"concurrency": "c", "rate": "r"}


def limits_of(type_name: str) -> TypeLimits | None:
    """What the code of this process declares for a job type; None where it has no limits or is not known here."""
    return registry.get(type_name).limits if type_name in registry else None


def keys_of(job: LeasedJob, limits: TypeLimits) -> tuple[str, str]:
    """The concurrency key and the rate key of a job, as far as they count; '' is the key of those that have none."""
    extras, (_, concurrency, rate) = job.extras, limits
    return (
        ("" if concurrency is None else extras.get("concurrency_key") or ""),
        ("" if rate is None else extras.get("rate_key") or ""),
    )


class Limits:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, topology: Topology) -> None:
        self._store = store
        self._clock = clock
        self._topology = topology
        self._setting_keys = SettingKeys(store.namespace)
        self._waited_for: set[str] = set()
        self._turn_at: dict[str, float] = {}  # type → when there is something to do for it, by our monotonic clock

    # --- workers ------------------------------------------------------------------------------------------------

    def take(
        self,
        limits: TypeLimits,
        route: Route,
        token: str,
        jobs: Sequence[LeasedJob],
        most: int,
        *,
        over: Sequence[Lease] = (),
        again: bool = False,
    ) -> Leave:
        """Asks leave for jobs of one type that were leased under ``token``; at most ``most`` of them are to start.

        ``over``: leases whose places are given back in the same call. ``again``: the same was asked before, and the
        answer did not arrive.
        """
        leave = Leave([], [], [])
        for batch in batches(jobs):
            groups = (_runs if len(batch) > most - len(leave.go) else _groups)(batch, limits)
            now, next_turn, waiting, count, *rest = self._run(
                "limit_take",
                limits,
                [*map(_field, over), *_items(groups, token)],
                route=str(route),
                most=most - len(leave.go),
                again="1" if again else "",
                over=len(over),
                when_resent={"again": "1"},
            )
            if waiting or limits.type in self._waited_for:
                self._follow(limits, [now, next_turn, waiting, *rest[: 2 * count]])
            over = ()
            letters = rest[2 * count].decode()
            if letters.count("g") == len(batch):
                leave.go.extend(batch)
                continue
            answers = dict(zip((job.id for _, of_keys in groups for job in of_keys), letters, strict=True))
            for job in batch:
                letter = answers[job.id]
                if letter == "g":
                    leave.go.append(job)
                elif letter == "e":
                    leave.rest.append(job)
                else:
                    leave.held.append((job, "concurrency" if letter == "c" else "rate"))
        return leave

    def hold_back(self, limits: TypeLimits, route: Route, held: Iterable[tuple[LeasedJob, Kind]]) -> None:
        """Sets leased jobs aside, without charge, and enters them in the lines of their keys."""
        for batch in batches(held, limit=CALL_BATCH):
            places = self.throttle(route, [(job.id, job.token) for job, _ in batch])
            items: list[Any] = []
            for (job, kind), (order, place) in zip(batch, places, strict=True):
                if place:  # else it is not ours any more
                    items += (job.id, *keys_of(job, limits), order, place, _LINES[kind])
            if items:
                self._store.call(lambda client: client.hset(self._setting_keys.limited, limits.type, 1))
                self._follow(limits, self._run("limit_wait", limits, items, route=str(route)))

    def throttle(self, route: Route, leases: Sequence[Lease]) -> list[tuple[bytes, bytes]]:
        """The first half of that: order and place of each job, two empty texts for those that do not wait."""
        items = [value for lease in leases for value in lease]
        answers = self._store.run("job_throttle", self._partition(route), items, given_now=self._now())
        return list(zip(answers[::2], answers[1::2], strict=True))

    def give(self, limits: TypeLimits, leases: Iterable[Lease]) -> None:
        """These leases are over: their places go to the next in line."""
        for batch in batches(leases):
            self._follow(limits, self._run("limit_give", limits, [*map(_field, batch)]))

    def turn(self, limits: TypeLimits) -> None:
        """Does what is due without anybody's doing: starts that a rate allows by now, calls that nobody answered."""
        self._follow(limits, self._run("limit_turn", limits))

    def is_waited_for(self, limits: TypeLimits) -> bool:
        """Whether somebody waited for a limit of the type when this process heard of it last."""
        return limits.type in self._waited_for

    def seconds_to_turn(self) -> float | None:
        """Until ``turn_due`` has something to do, as far as this process knows; None where nothing is to come."""
        return max(0.0, min(self._turn_at.values()) - monotonic()) if self._turn_at else None

    def turn_due(self) -> None:
        """``turn`` for the types for which this process knows that it is time."""
        now = monotonic()
        for type_name in [name for name, at in self._turn_at.items() if at <= now]:
            del self._turn_at[type_name]
            if (limits := limits_of(type_name)) is not None:
                self.turn(limits)

    def _follow(self, limits: TypeLimits, reply: Sequence[Any]) -> None:
        """Puts the jobs that were called back in line, and notes when to come again. Calls in vain (the job was
        cancelled, its pool is paused) are given back, which calls others."""
        for _ in range(MOST_REPLACED):
            now, next_turn, waiting, *called = reply
            self._note(limits.type, now, next_turn, waiting)
            vain = self._admit(zip(called[::2], called[1::2], strict=True))
            if not vain:
                return
            reply = self._run("limit_give", limits, [job_id + b"\n" for job_id in vain])

    def _admit(self, calls: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
        """Those who will not come."""
        by_route: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for job_id, text in calls:
            by_route[text].append(job_id)
        vain: list[bytes] = []
        for text, ids in by_route.items():
            route = parse_route(text.decode())
            if route is None or not self._topology.exists(route):
                vain += ids
            else:
                vain += [job_id for job_id, answer in self._admit_in(route, ids) if answer != b"ready"]
        return vain

    def _admit_in(self, route: Route, ids: Sequence[Any]) -> list[tuple[Any, bytes]]:
        answers: list[tuple[Any, bytes]] = []
        for batch in batches(ids, limit=CALL_BATCH):
            answers += zip(batch, self._store.run("job_admit", self._partition(route), batch), strict=True)
        return answers

    def _note(self, type_name: str, now: int, next_turn: Any, waiting: int) -> None:
        if waiting:
            self._waited_for.add(type_name)
        else:
            self._waited_for.discard(type_name)
        if isinstance(next_turn, int):
            self._turn_at[type_name] = monotonic() + max(0, next_turn - now) / 1000
        else:
            self._turn_at.pop(type_name, None)

    # --- upkeep -------------------------------------------------------------------------------------------------

    def waited_for(self) -> list[str]:
        """Job types whose limits hold somebody back, or did so until lately."""
        raw: Any = self._store.read(lambda client: client.hkeys(self._setting_keys.limited))
        return sorted(name.decode() for name in raw)

    def forget_if_idle(self, type_name: str) -> bool:
        """Nobody waits for this type's limits any more: no service needs to look. Whether that is so."""
        keys = LimitKeys(self._store.namespace, type_name)

        def waits(client: Any) -> bool:
            return bool(client.hlen(keys.waiters) or client.zcard(keys.called))

        if self._store.read(waits):
            return False
        self._store.call(lambda client: client.hdel(self._setting_keys.limited, type_name))
        if self._store.read(waits):  # somebody came in between
            self._store.call(lambda client: client.hset(self._setting_keys.limited, type_name, 1))
            return False
        return True

    def forgotten(self, limits: TypeLimits) -> set[Lease]:
        """Places whose lease is over and that nobody gave back, or not yet: see twice before you free them."""
        by_route: defaultdict[str, list[Lease]] = defaultdict(list)
        for field, holding in self._holders(limits.type):
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
        keys = self._partition(route)
        ids = [job_id for job_id, _ in leases]
        records = self._store.read(lambda client: client.hmget(keys.states, ids))
        return {lease for lease, raw in zip(leases, records, strict=True) if not _is_held(raw, lease[1])}

    def strays(self, route: Route) -> set[str]:
        """Jobs that were set aside and stand in no line that anybody serves: see twice before you put them back."""
        keys = self._partition(route)
        found: set[str] = set()
        start = 0
        while ids := self._store.read(lambda client: client.zrange(keys.throttled, start, start + PAGE - 1)):  # noqa: B023
            found |= self._unserved(keys, ids)
            start += PAGE
        return found

    def _unserved(self, keys: PartitionKeys, ids: Sequence[bytes]) -> set[str]:
        by_type: defaultdict[str, list[bytes]] = defaultdict(list)
        for batch in batches(ids, limit=READ_BATCH):
            bodies = self._store.read(lambda client: client.hmget(keys.bodies, batch))  # noqa: B023
            for job_id, body in zip(batch, bodies, strict=True):
                by_type[_type_in(body)].append(job_id)
        unserved: set[str] = set()
        for type_name, of_type in by_type.items():
            if type_name and type_name not in registry:
                continue  # whoever knows its limits will see to it
            waiters = self._waiters(type_name, of_type)
            limits = limits_of(type_name)
            unserved |= {
                job_id.decode()
                for job_id, waiter in zip(of_type, waiters, strict=True)
                if not _is_served(limits, waiter)
            }
        return unserved

    def put_back(self, route: Route, ids: Iterable[str]) -> int:
        """Puts jobs that were set aside back in line; how many."""
        return sum(answer != b"gone" for _, answer in self._admit_in(route, list(ids)))

    def tidy(self, limits: TypeLimits) -> int:
        """Drops what is remembered of rate keys that have not been used for a whole period; how many."""
        dropped, cursor = 0, b"0"
        while True:
            cursor, found = self._store.run(
                "limit_tidy",
                LimitKeys(self._store.namespace, limits.type),
                given_now=self._now(),
                period=limits.rate.period_ms if limits.rate else 0,
                cursor=cursor,
                count=PAGE,
            )
            dropped += int(found)
            if cursor == b"0":
                return dropped

    # --- looking ------------------------------------------------------------------------------------------------

    def holding(self, job: Job) -> list[Hold]:
        """What holds a ready job back now, in the order in which it is decided; empty where nothing does."""
        holds: list[Hold] = []
        if (full := self._full_pool(job.pool)) is not None:
            holds.append(full)
        if (limits := limits_of(job.type)) is not None and (waiter := self._waiters(job.type, [job.id])[0]) is not None:
            holds.append(self._held_by(limits, waiter))
        return holds

    def _held_by(self, limits: TypeLimits, waiter: _Waiter) -> Hold:
        if waiter.line == "c":
            holders = self._holders_of(limits.type, waiter.concurrency_key)
            return Hold("concurrency", waiter.concurrency_key, limits.concurrency or 0, holders)
        keys = LimitKeys(self._store.namespace, limits.type)
        due = self._store.read(lambda client: client.zscore(keys.due, waiter.rate_key))
        seconds = max(0.0, (due - self._now_ms()) / 1000) if due is not None else 0.0
        return Hold("rate", waiter.rate_key, str(limits.rate), [], round(seconds, 3))

    def _holders_of(self, type_name: str, key: str) -> list[str]:
        found: list[str] = []
        for field, holding in self._holders(type_name):
            if holding.partition("\n")[2] == key:
                found.append(field.rpartition("\n")[0])
            if len(found) == SHOWN_HOLDERS:
                break
        return found

    def _full_pool(self, pool: str) -> Hold | None:
        """The cap of a pool that has no room under it."""
        routes = self._topology.partitions(pool)
        keys = [self._partition(route) for route in routes]

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for of_route in keys:
                pipeline.hget(of_route.control, "max_running")
                pipeline.zcard(of_route.leased)
                pipeline.zrange(of_route.leased, 0, SHOWN_HOLDERS - 1)
            return list(pipeline.execute())

        replies = self._store.read(send) if keys else []
        shares = [whole_number(share) for share in replies[::3]]
        if not shares or any(
            share is None or leased < share for share, leased in zip(shares, replies[1::3], strict=True)
        ):
            return None
        holders = [job_id.decode() for ids in replies[2::3] for job_id in ids][:SHOWN_HOLDERS]
        return Hold("max_running", pool, sum(share or 0 for share in shares), holders)

    # --- what they share ------------------------------------------------------------------------------------------

    def _holders(self, type_name: str) -> Iterable[tuple[str, str]]:
        keys = LimitKeys(self._store.namespace, type_name)
        cursor = 0
        while True:
            cursor, found = self._store.read(lambda client: client.hscan(keys.holders, cursor, count=PAGE))  # noqa: B023
            for field, holding in found.items():
                yield field.decode(), holding.decode()
            if cursor == 0:
                return

    def _waiters(self, type_name: str, ids: Sequence[str | bytes]) -> list[_Waiter | None]:
        keys = LimitKeys(self._store.namespace, type_name)
        raw = self._store.read(lambda client: client.hmget(keys.waiters, list(ids)))
        return [_waiter_in(packed) for packed in raw]

    def _run(self, name: str, limits: TypeLimits, items: Sequence[Any] = (), **arguments: Any) -> Any:
        rate = limits.rate
        return self._store.run(
            name,
            LimitKeys(self._store.namespace, limits.type),
            items,
            given_now=self._now(),
            concurrency="" if limits.concurrency is None else limits.concurrency,
            starts=rate.starts if rate else "",
            period=rate.period_ms if rate else "",
            **arguments,
        )

    def _partition(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now

    def _now_ms(self) -> int:
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now


def _field(lease: Lease) -> str:
    """What a lease is called in the slot of its type's limits."""
    return f"{lease[0]}\n{lease[1]}"


_Groups = Sequence[tuple[tuple[str, str], list[LeasedJob]]]


def _groups(jobs: Sequence[LeasedJob], limits: TypeLimits) -> _Groups:
    """The jobs by their two keys: the fewest groups, for when all of them may be let through."""
    groups: defaultdict[tuple[str, str], list[LeasedJob]] = defaultdict(list)
    for job in jobs:
        groups[keys_of(job, limits)].append(job)
    return list(groups.items())


def _runs(jobs: Sequence[LeasedJob], limits: TypeLimits) -> _Groups:
    """The same in the order of the jobs, for when only the first of them are wanted."""
    return [(keys, list(run)) for keys, run in groupby(jobs, key=partial(keys_of, limits=limits))]


def _items(groups: _Groups, token: str) -> list[Any]:
    """As ``limit_take.lua`` takes them."""
    items: list[Any] = []
    suffix = f"\n{token}"
    for (key, rate_key), jobs in groups:
        items += (key, rate_key, len(jobs))
        items += [job.id + suffix for job in jobs]
    return items


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


def _waiter_in(packed: bytes | None) -> _Waiter | None:
    try:
        return _decode_waiter(packed) if packed else None
    except msgspec.MsgspecError:
        return None


def _is_served(limits: TypeLimits | None, waiter: _Waiter | None) -> bool:
    """Whether the job stands in the line of a limit that still exists."""
    if limits is None or waiter is None:
        return False
    return (limits.concurrency if waiter.line == "c" else limits.rate) is not None
