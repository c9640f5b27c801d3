"""What happened and when: totals since ever, and series of 10 seconds for a day and of 5 minutes for 30 days.

The scripts add to one hash per 10 seconds, which is *live*. ``fold`` carries those that are over into the totals and
the series; worker hosts do it every few seconds, and so does whoever reads. What is read is then the sum of both, taken
at one moment, so that totals only grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.core.clock import Clock
from jobs.core.figures import Figures, by_type
from jobs.core.job import Route, iso, moment
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.scripts import Call

WINDOW_MS = 10_000
SLOT_MS = 300_000
SECONDS_KEPT_MS = 86_400_000
MINUTES_KEPT_MS = 30 * 86_400_000

KEPT_LIVE = 4
"""Windows that are over and not folded yet: over as many, and the present one, a rate is taken."""

RATE_WINDOWS = 3
"""Whole windows over which a rate is taken, besides the one that is still filling."""

FINE_MINUTES = 120
"""As far back a series is told in steps of 10 seconds, if not asked otherwise; beyond, in steps of 5 minutes."""

ENTRIES = 720
"""Most entries of one call."""

_unpack = msgspec.msgpack.Decoder(dict[str, int]).decode


class Recent(NamedTuple):
    """What a partition did over the last half minute: its figures, and over how many seconds they were taken."""

    figures: Figures
    seconds: float


class Point(NamedTuple):
    """The figures of one step of a series."""

    at: datetime  # its start
    seconds: int  # its length
    figures: Figures

    def as_dict(self) -> dict[str, Any]:
        return {"at": iso(self.at), "seconds": self.seconds, **self.figures.as_dict()}


_Steps = list[tuple[int, Figures]]


class _Reading(NamedTuple):
    """One reply of figures_read.lua; starts in ms, fields and numbers in turn."""

    totals: list[bytes]
    entries: list[tuple[int, bytes]]
    live: list[tuple[int, list[bytes]]]


class _Wanted(NamedTuple):
    """What is to be read of a partition: a series from a moment (ms) on, of one type or of all; or its totals."""

    route: Route
    line: str = "seconds"
    since: int | None = None  # None: the totals
    type_name: str | None = None

    def arguments(self, now: Any) -> dict[str, Any]:
        return {
            "given_now": now,
            "with_totals": "1" if self.since is None else "",
            "since": "" if self.since is None else str(self.since),
            "name": "all" if self.type_name is None else f":{self.type_name}",
            "limit": ENTRIES,
        }


class _ReadKeys:
    """The partition's keys with the one series that is read."""

    def __init__(self, keys: PartitionKeys, line: str) -> None:
        self.control, self.live, self.counters = keys.control, keys.live, keys.counters
        self.series: str = getattr(keys, line)


class Series:
    """See the module. Costs as much as there are partitions, types and steps; the backlog does not matter."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def fold(self, routes: Sequence[Route]) -> int:
        """Carries the windows that are over into totals and series; how many there were."""
        folded = 0
        while routes:
            replies = self._store.run_each(
                "figures_fold", [Call(self._keys(route), self._limits()) for route in routes]
            )
            folded += sum(int(number) for number, _ in replies)
            routes = [route for route, (_, more) in zip(routes, replies, strict=True) if more]
        return folded

    def _limits(self) -> dict[str, Any]:
        return {
            "given_now": self._now(),
            "keep_live": KEPT_LIVE,
            "keep_seconds": SECONDS_KEPT_MS,
            "keep_minutes": MINUTES_KEPT_MS,
        }

    def count(self, route: Route, figure: str, type_name: str, number: int = 1) -> None:
        """Counts what no other script sees. See ``jobs.core.figures.COUNTED``."""
        self._store.run(
            "figures_count", self._keys(route), given_now=self._now(), figure=figure, type=type_name, number=number
        )

    def totals(self, routes: Sequence[Route]) -> dict[Route, dict[str, Figures]]:
        """For each partition: job type → all that was ever counted of it there."""
        self.fold(routes)
        return {route: _summed(reading) for route, reading in self._read(_Wanted(route) for route in routes)}

    def recent(self, routes: Sequence[Route], now_ms: int) -> dict[Route, Recent]:
        """What each partition did lately, in one round trip. Windows stay live for as long as this looks back."""
        current = now_ms // WINDOW_MS
        windows = range(current - RATE_WINDOWS, current + 1)
        seconds = (RATE_WINDOWS * WINDOW_MS + now_ms % WINDOW_MS) / 1000

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for route in routes:
                for window in windows:
                    pipeline.hgetall(f"{self._keys(route).live}{window}")
            return list(pipeline.execute())

        replies = iter(self._store.read(send) if routes else [])
        recent = {}
        for route in routes:
            figures = Figures()
            for _ in windows:
                for field, value in next(replies).items():
                    figures.add(field.decode(errors="replace").partition(":")[0], whole_number(value) or 0)
            recent[route] = Recent(figures, seconds)
        return recent

    def points(
        self, routes: Sequence[Route], minutes: float = 60, *, type_name: str | None = None, step: int | None = None
    ) -> list[Point]:
        """The last ``minutes`` of these partitions together, oldest first, without steps in which nothing happened.

        ``step``: 10 or 300 seconds, None = by how far back it goes. ``type_name``: of this job type only.
        """
        return self.points_of([routes], minutes, type_name=type_name, step=step)[0]

    def points_of(
        self,
        groups: Sequence[Sequence[Route]],
        minutes: float = 60,
        *,
        type_name: str | None = None,
        step: int | None = None,
    ) -> list[list[Point]]:
        """The same for several groups of partitions, in as few round trips as for one."""
        length = (step or (WINDOW_MS if minutes <= FINE_MINUTES else SLOT_MS) // 1000) * 1000
        since = self._server_now_ms() - int(minutes * 60_000) + 1
        routes = [route for group in groups for route in group]
        self.fold(routes)
        found = self._entries(routes, since, length, type_name)
        return [_points((step for route in group for step in found[route]), since, length) for group in groups]

    def _entries(self, routes: Sequence[Route], since: int, length: int, type_name: str | None) -> dict[Route, _Steps]:
        """Start (ms) and figures; what is in no step of 5 minutes yet is told in steps of 10 seconds."""
        found: dict[Route, _Steps] = {route: [] for route in routes}
        begins = dict.fromkeys(routes, since)
        if length == SLOT_MS:
            for route, (slots, _) in self._streams("minutes", begins, type_name).items():
                found[route] += slots
                begins[route] = slots[-1][0] + SLOT_MS if slots else since
        for route, (entries, live) in self._streams("seconds", begins, type_name).items():
            found[route] += entries + live
        return found

    def _streams(
        self, line: str, begins: Mapping[Route, int], type_name: str | None
    ) -> dict[Route, tuple[_Steps, _Steps]]:
        """Of each partition the entries of a series from then on, and the windows that are still live."""
        found: dict[Route, tuple[_Steps, _Steps]] = {route: ([], []) for route in begins}
        left = dict(begins)
        while left:
            wanted = [_Wanted(route, line, max(0, since), type_name) for route, since in left.items()]
            left = {}
            for route, reading in self._read(wanted):
                entries, _ = found[route]
                entries += ((at, Figures.of(_unpacked(packed).items())) for at, packed in reading.entries)
                found[route] = entries, [(at, _of_type(flat, type_name)) for at, flat in reading.live]
                if len(reading.entries) == ENTRIES:
                    left[route] = reading.entries[-1][0] + 1
        return found

    def _read(self, wanted: Iterable[_Wanted]) -> list[tuple[Route, _Reading]]:
        """In one round trip."""
        asked = list(wanted)
        replies = self._store.run_each(
            "figures_read",
            [Call(_ReadKeys(self._keys(one.route), one.line), one.arguments(self._now())) for one in asked],
        )
        return [(one.route, _reading(reply)) for one, reply in zip(asked, replies, strict=True)]

    def _server_now_ms(self) -> int:
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def _keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def _points(steps: Iterable[tuple[int, Figures]], since: int, length: int) -> list[Point]:
    """The steps in steps of this length (ms), oldest first, from that moment on."""
    sums: dict[int, Figures] = defaultdict(Figures)
    for at, figures in steps:
        sums[at // length * length].merge(figures)
    return [Point(moment(at), length // 1000, sums[at]) for at in sorted(sums) if at >= since]


def _reading(reply: Any) -> _Reading:
    _, counters, entries, live = reply
    return _Reading(
        counters,
        [(int(at), packed) for at, packed in zip(entries[::2], entries[1::2], strict=True)],
        [(int(at), flat) for at, flat in zip(live[::2], live[1::2], strict=True)],
    )


def _summed(reading: _Reading) -> dict[str, Figures]:
    fields: dict[str, int] = defaultdict(int)
    for flat in (reading.totals, *(flat for _, flat in reading.live)):
        for field, number in _pairs(flat):
            fields[field] += number
    return by_type(fields)


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    """Fields and numbers of a hash as a script replies it. What is no number counts as nothing."""
    for field, value in zip(flat[::2], flat[1::2], strict=True):
        yield field.decode(errors="replace"), whole_number(value) or 0


def _of_type(flat: Sequence[bytes], type_name: str | None) -> Figures:
    figures = Figures()
    for field, number in _pairs(flat):
        name, _, of_type = field.partition(":")
        if type_name is None or of_type == type_name:
            figures.add(name, number)
    return figures


def _unpacked(packed: bytes) -> dict[str, int]:
    try:
        return _unpack(packed) if packed else {}
    except msgspec.MsgspecError:
        return {}
