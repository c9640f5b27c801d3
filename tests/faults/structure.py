"""Check K16: every index of the store rebuilt from a raw scan of its keys, and compared with what is there.

Reads keys and bytes, and of the product only the key names and the codec: an engine that keeps its own lists
in step with its own mistakes is still found out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import floor
from typing import Any

import msgspec
import redis

from jobs.core.job import Route
from jobs.store.codec.bodies import Body, decode_body
from jobs.store.codec.ids import parse_route
from jobs.store.codec.records import RECORD, Record, decode_record
from jobs.store.keys import is_known

LINES = (
    "scheduled",
    "retry_wait",
    "blocked",
    "ready",
    "throttled",
    "leased",
    "succeeded",
    "dead",
    "cancelled",
    "skipped",
)
LINE_ENDS = ("succeeded", "dead", "cancelled", "skipped")
PLACES_PER_PRIORITY = 2**44
BUNDLE_MARK = b"\n"
NEXT_KINDS = """
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
local reply = { found[1] }
for _, key in ipairs(found[2]) do
  reply[#reply + 1] = key
  reply[#reply + 1] = redis.call('TYPE', key).ok
end
return reply
"""


@dataclass(frozen=True)
class StoredJob:
    """A job as its bytes say."""

    id: str
    route: Route
    state: str
    record: Record | None
    body: Body | None
    score: float
    parked: bool


@dataclass
class Structure:
    """All jobs of a namespace, and everything that does not fit together."""

    jobs: dict[str, StoredJob] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    holders: dict[str, dict[str, str]] = field(default_factory=lambda: {"ids": {}, "unique": {}})


def read_structure(client: redis.Redis, namespace: str) -> Structure:
    """Scans all keys of the namespace. Only meaningful while nothing writes."""
    structure = Structure()
    partitions: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    limits: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in _read_all(client, namespace):
        if not is_known(namespace, key):
            structure.problems.append(f"a key that nobody owns: {key}")
            continue
        tag, _, what = key.removeprefix(f"{namespace}:{{").partition("}:")
        if tag.startswith("limits."):
            limits[tag.removeprefix("limits.")][what] = value
        elif what == "holders":
            structure.holders[tag.partition(".")[0]].update(
                {_text(name): _text(holder) for name, holder in value.items()}
            )
        elif route := parse_route(tag):
            partitions[str(route)][what] = value
    for tag, found in partitions.items():
        route = parse_route(tag)
        assert route is not None
        _Partition(route, found, structure).compare()
    for type_name, found in limits.items():
        _compare_limits(type_name, found, structure)
    return structure


def _compare_limits(type_name: str, found: dict[str, Any], structure: Structure) -> None:
    """The slot of one type's limits: the places taken are those of its holders, and who waits stands in one line."""
    held = Counter(holding.partition(b"\n")[2] for holding in found.get("holders", {}).values())
    counted = {key: int(count) for key, count in found.get("counts", {}).items()}
    if counted != dict(held):
        structure.problems.append(f"limits of {type_name}: {counted} places are counted, {dict(held)} are held")
    in_line = [
        member.partition(b"\n")[2] for what, line in found.items() if what.startswith("line:") for member in line
    ]
    if sorted(in_line) != sorted(found.get("waiters", {})):
        structure.problems.append(f"limits of {type_name}: not everybody who waits stands in one line")


class _Partition:
    """One partition's keys, each by the name that follows its hash tag."""

    def __init__(self, route: Route, found: dict[str, Any], structure: Structure) -> None:
        self.route = route
        self.found = found
        self.structure = structure
        self.bodies: dict[bytes, bytes] = found.get("bodies", {})
        self.states: dict[bytes, bytes] = found.get("states", {})
        self.voided: dict[bytes, float] = found.get("voided", {})
        self.tied = self._tied()

    def compare(self) -> None:
        memberships = self._memberships()
        for raw_id, raw_body in self.bodies.items():
            if raw_body == b"":
                self._expect(raw_id in self.voided, raw_id, "voided, but not in the list of voided ids")
                self._expect(raw_id not in memberships, raw_id, "voided, but in a line")
            else:
                self._compare_job(raw_id, raw_body, memberships.get(raw_id, []))
        for raw_id, lines in memberships.items():
            self._expect(raw_id in self.bodies, raw_id, f"in {lines} without a body")
        for name in ("states", "attempts", "results", "progress", "expiring"):
            for raw_id in self.found.get(name, {}):
                self._expect(bool(self.bodies.get(raw_id)), raw_id, f"in {name} without a body")
        for raw_id in self.voided:
            self._expect(self.bodies.get(raw_id) == b"", raw_id, "in the list of voided ids with a body")
        self._compare_parked()
        self._compare_bundles()
        for what, figures in self.found.items():
            if what == "counters" or what.startswith("live:"):
                self._count(figures)
        wake = self.found.get("wake", [])
        self._expect(len(wake) <= 1, b"wake", f"holds {len(wake)} tokens")

    def _count(self, figures: dict[bytes, bytes]) -> None:
        """Totals by figure and type. Each success is counted by its place in the histogram of running times."""
        for name, number in figures.items():
            figure, _, type_name = _text(name).partition(":")
            if figure[:3] == "run" and figure[3:].isdecimal():
                figure = "succeeded"
            counter = f"{figure}:{type_name}"
            self.structure.counters[counter] = self.structure.counters.get(counter, 0) + int(number)

    def _memberships(self) -> dict[bytes, list[tuple[str, float]]]:
        """Id → the lines that it is in, with its scores."""
        memberships: defaultdict[bytes, list[tuple[str, float]]] = defaultdict(list)
        for line in LINES:
            for raw_id, score in self.found.get(line, {}).items():
                for one in self.tied[raw_id[1:]] if raw_id.startswith(BUNDLE_MARK) else (raw_id,):
                    memberships[one].append((line, score))
        for what, members in self.found.items():
            if what.startswith("parked:"):
                for raw_id, score in members.items():
                    memberships[raw_id].append((what, score))
        return memberships

    def _compare_job(self, raw_id: bytes, raw_body: bytes, lines: list[tuple[str, float]]) -> None:
        if len(lines) != 1:
            self._problem(raw_id, f"in {len(lines)} lines: {[line for line, _ in lines]}")
            return
        line, score = lines[0]
        body, record = self._decoded(raw_id, raw_body)
        parked = line.startswith("parked:")
        state = record.state if record else line
        aside = parked or line == "throttled"
        self._expect(state == ("ready" if aside else line), raw_id, f"is {state}, but stands in {line}")
        if record is None:
            self._expect(line in {"ready", "scheduled"}, raw_id, f"stands in {line} without a record")
        if body and parked:
            self._expect(line == f"parked:{body.type}", raw_id, f"of type {body.type} is parked under {line}")
        if body and line in {"scheduled", "retry_wait"}:
            due = record.run_at if record and record.run_at else body.run_at
            self._expect(floor(score) == due, raw_id, f"is due at {due}, but stands in {line} at {score}")
            self._expect(
                (score - floor(score)) * 256 == 100 - body.priority, raw_id, f"lost its priority {body.priority}"
            )
        if body and (line == "ready" or aside):
            self._expect(
                score // PLACES_PER_PRIORITY == 100 - body.priority, raw_id, f"lost its priority {body.priority}"
            )
        if record:
            self._compare_record(raw_id, record, line, score)
        self.structure.jobs[_text(raw_id)] = StoredJob(_text(raw_id), self.route, state, record, body, score, parked)

    def _compare_record(self, raw_id: bytes, record: Record, line: str, score: float) -> None:
        if record.state == "leased":
            self._expect(bool(record.token), raw_id, "is leased without a token")
            self._expect(record.attempt >= 1, raw_id, "is leased, but no attempt was counted")
        if line == "ready":
            self._expect(score == record.place, raw_id, f"stands at {score}, its record says {record.place}")
        if line in LINE_ENDS:
            self._expect(record.finished_at == score, raw_id, f"ended {record.finished_at}, but stands at {score}")
        if record.state != "succeeded":
            left = self.found.get("results", {}).get(raw_id)
            is_note = record.state == "cancelled" and left is not None and left.startswith(b'{"moved_to":')
            self._expect(left is None or is_note, raw_id, f"is {record.state} with a result")
        for name in ("attempt", "errors", "crashes", "fence", "lost"):
            self._expect(getattr(record, name) >= 0, raw_id, f"has {name} {getattr(record, name)}")
        self._expect(
            record.fence >= record.attempt or record.resubmissions > 0, raw_id, "has more attempts than leases"
        )

    def _decoded(self, raw_id: bytes, raw_body: bytes) -> tuple[Body | None, Record | None]:
        body = record = None
        try:
            body = decode_body(raw_body)
            record = decode_record(self.states[raw_id]) if raw_id in self.states else None
        except ValueError as error:
            self._problem(raw_id, f"cannot be read: {error}")
        return body, record

    def _compare_parked(self) -> None:
        counted = {_text(name): int(count) for name, count in self.found.get("parked", {}).items()}
        there = {
            what.removeprefix("parked:"): len(members)
            for what, members in self.found.items()
            if what.startswith("parked:")
        }
        self._expect(counted == there, b"parked", f"counts {counted}, holds {there}")

    def _tied(self) -> defaultdict[bytes, set[bytes]]:
        """Token → the jobs that share its lease: in their records nothing stands behind the start."""
        tied: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for raw_id, raw in self.states.items():
            with suppress(ValueError):
                record = decode_record(raw)
                bare = RECORD.size + 1 + len(record.token) + 1 + len(record.worker) + 8
                if record.state == "leased" and len(raw) == bare:
                    tied[record.token.encode()].add(raw_id)
        return tied

    def _compare_bundles(self) -> None:
        counted = {token: int(number) for token, number in self.found.get("bundled", {}).items()}
        there = {token: len(jobs) for token, jobs in self.tied.items() if jobs}
        entries = {entry[1:] for entry in self.found.get("leased", {}) if entry.startswith(BUNDLE_MARK)}
        bundles = self.found.get("bundles", {})
        self._expect(counted == there, b"bundled", f"counts {counted}, holds {there}")
        self._expect(entries == set(there), b"leased", f"has leases for the bundles {entries}, there are {set(there)}")
        self._expect(set(bundles) == set(there), b"bundles", f"are kept of {set(bundles)}, there are {set(there)}")
        for token in set(bundles) & set(there):
            _, *lines = msgspec.msgpack.decode(bundles[token])
            places = dict(pair for line in lines for pair in zip(line[::2], line[1::2], strict=True))
            for raw_id in self.tied[token]:
                priority = decode_body(self.bodies[raw_id]).priority if self.bodies.get(raw_id) else 0
                place = int(places.get(_text(raw_id), -1))
                self._expect(place // PLACES_PER_PRIORITY == 100 - priority, raw_id, f"has place {place} in its bundle")

    def _expect(self, holds: bool, raw_id: bytes, otherwise: str) -> None:
        if not holds:
            self._problem(raw_id, otherwise)

    def _problem(self, raw_id: bytes, what: str) -> None:
        self.structure.problems.append(f"{self.route} {_text(raw_id)}: {what}")


def _read_all(client: redis.Redis, namespace: str) -> Iterator[tuple[str, Any]]:
    """Each key of the namespace with its whole value: hash and sorted set as a dictionary, list, or bytes."""
    kinds = sorted(_kinds(client, namespace).items())
    with client.pipeline(transaction=False) as pipe:
        for key, kind in kinds:
            match kind:
                case b"hash":
                    pipe.hgetall(key)
                case b"zset":
                    pipe.zrange(key, 0, -1, withscores=True)
                case b"list":
                    pipe.lrange(key, 0, -1)
                case b"stream":
                    pipe.xrange(key)
                case _:
                    pipe.get(key)
        for (key, kind), value in zip(kinds, pipe.execute(), strict=True):
            yield key.decode(), dict(value) if kind == b"zset" else value


def _kinds(client: redis.Redis, namespace: str) -> dict[bytes, bytes]:
    """Key → its type. In one trip where there are few: a machine asks after each of its steps."""
    kinds, cursor = dict[bytes, bytes](), b"0"
    while True:
        cursor, *found = client.eval(NEXT_KINDS, 0, cursor, f"{namespace}:*")  # type: ignore[misc]
        kinds.update(zip(found[::2], found[1::2], strict=True))
        if cursor == b"0":
            return kinds


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
