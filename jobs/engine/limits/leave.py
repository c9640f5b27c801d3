"""Leave to start: what workers ask for, give back and do for those who wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from time import monotonic
from typing import Any, Literal, NamedTuple

import msgspec

from jobs.core.job import LeasedJob, Route
from jobs.core.limits import TypeLimits
from jobs.engine.batches import batches
from jobs.engine.limits.records import CALL_BATCH, Lease, LimitRecords, limits_of
from jobs.store.codec.ids import parse_route
from jobs.store.topology import Topology

MOST_REPLACED = 100
"""Calls in a row that may be in vain before whoever made them stops; the last one runs out by itself."""

Kind = Literal["concurrency", "rate"]

_pack = msgspec.msgpack.Encoder().encode


class Leave(NamedTuple):
    """What became of a request for leave. ``held``: with the limit that holds each back. ``rest``: beyond what was
    wanted, nothing was decided about them."""

    go: list[LeasedJob]
    held: list[tuple[LeasedJob, Kind]]
    rest: list[LeasedJob]

    def hear(self, answers: Iterable[tuple[LeasedJob, str]]) -> None:
        """Sorts jobs by the letter that a script has given each."""
        for job, letter in answers:
            if letter == "g":
                self.go.append(job)
            elif letter == "e":
                self.rest.append(job)
            else:
                self.held.append((job, "concurrency" if letter == "c" else "rate"))


_LINES: dict[str, str] = {"concurrency": "c", "rate": "r"}


def keys_of(job: LeasedJob, limits: TypeLimits) -> tuple[str, str]:
    """The concurrency key and the rate key of a job, as far as they count; '' is the key of those that have none."""
    extras, (_, concurrency, rate) = job.extras, limits
    return (
        ("" if concurrency is None else extras.get("concurrency_key") or ""),
        ("" if rate is None else extras.get("rate_key") or ""),
    )


class Limits:
    """See the module."""

    def __init__(self, records: LimitRecords, topology: Topology) -> None:
        self._records = records
        self._topology = topology
        self._waited_for: set[str] = set()
        self._turn_at: dict[str, float] = {}  # type → when there is something to do for it, by our monotonic clock

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
            wanted = most - len(leave.go)
            if over or again or not self._start(limits, batch, wanted, leave):
                self._take(limits, route, token, batch, wanted, leave, over=over, again=again)
            over = ()
        return leave

    def _start(self, limits: TypeLimits, jobs: Sequence[LeasedJob], most: int, leave: Leave) -> bool:
        """Where nobody waits, a rate alone is a matter of counting. Whether it was one."""
        rate = limits.rate
        if rate is None or limits.concurrency is not None or limits.type in self._waited_for:
            return False
        keys = [job.extras.get("rate_key") or "" for job in jobs]
        if len(jobs) <= most:
            groups = Counter(keys)
            names, sizes = [*groups], [*groups.values()]
        else:  # only the first of them are wanted: in their order
            runs = [(key, sum(1 for _ in run)) for key, run in groupby(keys)]
            names, sizes = [key for key, _ in runs], [size for _, size in runs]
        letters = self._records.store.run(
            "limit_start",
            self._records.keys(limits.type),
            given_now=self._records.now(),
            starts=rate.starts,
            period=rate.period_ms,
            most=most,
            wanted=_pack((names, sizes)),
        ).decode()
        if not letters:
            return False
        if letters.count("g") == len(jobs):
            leave.go.extend(jobs)
        else:
            leave.hear(zip(jobs, _one_by_one(keys, names, sizes, letters), strict=True))
        return True

    def _take(
        self,
        limits: TypeLimits,
        route: Route,
        token: str,
        jobs: Sequence[LeasedJob],
        most: int,
        leave: Leave,
        *,
        over: Sequence[Lease],
        again: bool,
    ) -> None:
        groups, suffix = _groups(jobs, limits, in_order=len(jobs) > most), f"\n{token}"
        now, next_turn, waiting, count, *rest = self._records.run(
            "limit_take",
            limits,
            route=str(route),
            most=most,
            again="1" if again else "",
            over=_pack(_fields(over)),
            wanted=_pack([(*keys, [job.id + suffix for job in of_keys]) for keys, of_keys in groups]),
            when_resent={"again": "1"},
        )
        if waiting or limits.type in self._waited_for:
            self._follow(limits, [now, next_turn, waiting, *rest[: 2 * count]])
        letters = rest[2 * count].decode()
        if letters.count("g") == len(jobs):
            leave.go.extend(jobs)
            return
        answers = dict(zip((job.id for _, of_keys in groups for job in of_keys), letters, strict=True))
        leave.hear((job, answers[job.id]) for job in jobs)

    def hold_back(self, limits: TypeLimits, route: Route, held: Iterable[tuple[LeasedJob, Kind]]) -> None:
        """Sets leased jobs aside, without charge, and enters them in the lines of their keys."""
        for batch in batches(held, limit=CALL_BATCH):
            places = self.throttle(route, [(job.id, job.token) for job, _ in batch])
            items: list[Any] = []
            for (job, kind), (order, place) in zip(batch, places, strict=True):
                if place:  # else it is not ours any more
                    items += (job.id, *keys_of(job, limits), order, place, _LINES[kind])
            if items:
                self._records.store.call(lambda client: client.hset(self._records.limited, limits.type, 1))
                self._follow(limits, self._records.run("limit_wait", limits, items, route=str(route)))

    def throttle(self, route: Route, leases: Sequence[Lease]) -> list[tuple[bytes, bytes]]:
        """The first half of that: order and place of each job, two empty texts for those that do not wait."""
        items = [value for lease in leases for value in lease]
        answers = self._records.store.run(
            "job_throttle", self._records.partition(route), items, given_now=self._records.now()
        )
        return list(zip(answers[::2], answers[1::2], strict=True))

    def give(self, limits: TypeLimits, leases: Iterable[Lease]) -> None:
        """These leases are over: their places go to the next in line."""
        for batch in batches(leases):
            self._follow(limits, self._records.run("limit_give", limits, over=_pack(_fields(batch))))

    def turn(self, limits: TypeLimits) -> None:
        """Does what is due without anybody's doing: starts that a rate allows by now, calls that nobody answered."""
        self._follow(limits, self._records.run("limit_turn", limits))

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
            calls = [(job_id.decode(errors="replace"), "") for job_id in vain]  # what is no text runs out by itself
            reply = self._records.run("limit_give", limits, over=_pack(_fields(calls)))

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
                vain += [job_id for job_id, answer in self._records.admit(route, ids) if answer != b"ready"]
        return vain

    def _note(self, type_name: str, now: int, next_turn: Any, waiting: int) -> None:
        if waiting:
            self._waited_for.add(type_name)
        else:
            self._waited_for.discard(type_name)
        if isinstance(next_turn, int):
            self._turn_at[type_name] = monotonic() + max(0, next_turn - now) / 1000
        else:
            self._turn_at.pop(type_name, None)


def _fields(leases: Iterable[Lease]) -> list[str]:
    """What leases are called in the slot of their type's limits."""
    return [f"{job_id}\n{token}" for job_id, token in leases]


def _groups(
    jobs: Sequence[LeasedJob], limits: TypeLimits, *, in_order: bool
) -> list[tuple[tuple[str, str], list[LeasedJob]]]:
    """The jobs by their two keys: the fewest groups, for when all of them may be let through. ``in_order``: a new one
    where the keys change, for when only the first jobs are wanted."""
    groups: list[tuple[tuple[str, str], list[LeasedJob]]] = []
    known: dict[tuple[str, str], list[LeasedJob]] = {}
    extras: object = None
    members: list[LeasedJob] = []
    for job in jobs:
        if job.extras is not extras:  # jobs that are alike share theirs
            extras, keys = job.extras, keys_of(job, limits)
            if in_order:
                known = {keys: members} if groups and groups[-1][0] == keys else {}
            if keys not in known:
                known[keys] = []
                groups.append((keys, known[keys]))
            members = known[keys]
        members.append(job)
    return groups


def _one_by_one(keys: Sequence[str], names: Sequence[str], sizes: Sequence[int], letters: str) -> Iterator[str]:
    """The letter of each job, where the letters stand key by key. A key whose jobs do not follow each other stands
    there once, or each time that they do."""
    of_key: defaultdict[str, list[str]] = defaultdict(list)
    start = 0
    for name, size in zip(names, sizes, strict=True):
        of_key[name].extend(letters[start : start + size])
        start += size
    left = {name: iter(of_name) for name, of_name in of_key.items()}
    return (next(left[key]) for key in keys)
