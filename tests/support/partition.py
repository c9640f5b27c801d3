"""One partition as plain Python values: put a state there, run a script on it, read the whole of it back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from jobs.core.job import JobSpec, Route
from jobs.store.codec.bodies import FORMAT, HEADER_AT, TIMES, encode_header
from jobs.store.codec.records import _STARTED_AT, _STATE_OF, RECORD, Record, decode_record
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.scripts import script

State = dict[str, Any]
"""Name of the key (as in ``PartitionKeys``; ``parked_of:<type>`` and ``log_of:<attempt>:<id>`` for those of a prefix) →
its content: dicts for hashes and sorted sets, lists for lists, numbers for strings. Keys that do not exist are left
out."""

NOW = 1_800_000_000_000
"""The time of most scripts in tests, ms."""

ROUTE = Route("default", 1, 0)

STRINGS = ("clock", "sequence")
LISTS = ("wake",)
STREAMS = ("seconds", "minutes")
LINES = (
    "scheduled",
    "retry_wait",
    "blocked",
    "ready",
    "leased",
    "succeeded",
    "dead",
    "cancelled",
    "skipped",
    "expiring",
    "throttled",
    "voided",
)
HASHES = (
    "bodies",
    "states",
    "attempts",
    "results",
    "progress",
    "logs",
    "parked",
    "nodes",
    "outbox",
    "halted",
    "grants",
    "bundles",
    "bundled",
    "control",
    "counters",
)
PACKED = ("grants", "bundles", "logs")
NUMBERED = ("parked", "counters", "halted", "bundled")


def body(
    payload: bytes = b"{}",
    *,
    type: str = "t",
    created_at: int = NOW - 5_000,
    run_at: int = NOW - 5_000,
    **options: Any,
) -> bytes:
    """A stored body; ``options`` as in JobSpec."""
    return TIMES.pack(created_at, run_at) + encode_header(JobSpec(type=type, **options)) + payload


NEWER = body()[: HEADER_AT + 1] + bytes([FORMAT + 1]) + body()[HEADER_AT + 2 :]
"""A body of a format that only a newer release can read."""


def record(state: str, **fields: Any) -> Record:
    """A stored record; what is not named is zero or empty."""
    return Record(state=state, **fields)


def held(**fields: Any) -> Record:
    """The record of a job that worker ``w`` holds under ``token`` since a second."""
    facts = {"attempt": 1, "fence": 1, "ready_at": NOW - 5_000, "leased_at": NOW - 1_000, "place": place(1)}
    return Record(**{"state": "leased", "token": "token", "worker": "w", **facts, **fields})


def packed(value: Record) -> bytes:
    """A record as it is stored (lua/include/record_fields.lua)."""
    state, *numbers, token, worker, started_at, place = value
    texts = b"".join(bytes([len(text)]) + text for text in (token.encode(), worker.encode()))
    head = RECORD.pack(_STATE_OF.index(state), *numbers) + texts
    return head + _STARTED_AT.pack(started_at) + (str(place).encode() if place else b"")


def place(number: int, priority: int = 0) -> int:
    """Score in the ready line of the ``number``-th job at this priority."""
    return (100 - priority) * 2**44 + number


def due(at: int, priority: int = 0) -> float:
    """Score in a waiting line."""
    return at + (100 - priority) / 256


def error(type: str, message: str) -> str:
    """The JSON of an error as the engine's scripts write it."""
    return f'{{"type": "{type}", "message": "{message}", "traceback": ""}}'


class Partition:
    """The partition ``ROUTE`` of a store."""

    def __init__(self, store: Store, route: Route = ROUTE) -> None:
        self.store = store
        self.keys: PartitionKeys = partition_keys(store.namespace, route)

    def put(self, state: State) -> None:
        """Writes the contents; what is already there stays."""
        client = self.store.client
        for name, content in state.items():
            key = self._key(name)
            if name in STRINGS:
                client.set(key, content)
            elif name in LISTS or name.startswith("log_of:"):
                client.rpush(key, *content)
            elif name in LINES or name.startswith("parked_of:"):
                client.zadd(key, content)
            else:
                client.hset(key, mapping={field: _stored(name, value) for field, value in content.items()})

    def run(self, name: str, *items: Any, **arguments: Any) -> Any:
        """Runs a script at ``NOW`` (or ``given_now``); bytes in its reply come back as text where they are text."""
        if "given_now" in script(name).arguments:
            arguments.setdefault("given_now", NOW)
        return _as_text(self.store.run(name, self.keys, items, **arguments))

    def state(self) -> State:
        """All that is stored."""
        names = (
            *STRINGS,
            *LISTS,
            *STREAMS,
            *LINES,
            *HASHES,
            *self._named("parked_of"),
            *self._named("live"),
            *self._named("log_of"),
        )
        pipeline: Any = self.store.client.pipeline(transaction=False)
        for name in names:
            key = self._key(name)
            if name in STRINGS:
                pipeline.get(key)
            elif name in LISTS or name.startswith("log_of:"):
                pipeline.lrange(key, 0, -1)
            elif name in STREAMS:
                pipeline.xrange(key)
            elif name in HASHES or name.startswith("live:"):
                pipeline.hgetall(key)
            else:
                pipeline.zrange(key, 0, -1, withscores=True)
        contents = zip(names, pipeline.execute(), strict=True)
        return _with_one_counters({name: _content(name, content) for name, content in contents if content})

    def _key(self, name: str) -> str:
        prefix, colon, rest = name.partition(":")
        return getattr(self.keys, prefix) + rest if colon else str(getattr(self.keys, name))

    def _named(self, attribute: str) -> Iterable[str]:
        """Of the keys with a common prefix, those that are there."""
        prefix = str(getattr(self.keys, attribute))
        pattern = prefix.translate({ord("{"): "?", ord("}"): "?"}) + "*"
        keys: Any = self.store.client.scan_iter(match=pattern)
        return (f"{attribute}:" + key.decode().removeprefix(prefix) for key in keys)


def _with_one_counters(found: State) -> State:
    """The figures of all live windows, and the totals, as one: what was counted, whenever it was."""
    totals: dict[str, int] = {}
    for name in [name for name in found if name == "counters" or name.startswith("live:")]:
        for figure, number in found.pop(name).items():
            totals[figure] = totals.get(figure, 0) + number
    return {**found, "counters": totals} if totals else found


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, Record):
        return packed(value)
    if name in PACKED:
        return msgspec.msgpack.encode(value)
    if name == "attempts" and isinstance(value, list):
        return bytes([len(value)]) + b"".join(msgspec.msgpack.encode(entry) for entry in value)
    return value


def _content(name: str, content: Any) -> Any:
    if name in STRINGS:
        return int(content)
    if name in LISTS or name.startswith("log_of:"):
        return _as_text(content)
    if name in STREAMS:
        return {int(at.partition(b"-")[0]): _maps(entry) for at, entry in content}
    if name in HASHES or name.startswith("live:"):
        return {_as_text(field): _shown(name, value) for field, value in content.items()}
    return {_as_text(member): score for member, score in content}


def _maps(entry: dict[bytes, bytes]) -> dict[str, Any]:
    return {_as_text(field): msgspec.msgpack.decode(packed) for field, packed in entry.items()}


def _shown(name: str, raw: bytes) -> Any:
    if name in ("states", "outbox"):
        return _or_raw(lambda: decode_record(raw), raw)
    if name in PACKED:
        return _or_raw(lambda: msgspec.msgpack.decode(raw), raw)
    if name == "attempts":
        return _or_raw(lambda: [tuple(entry) for entry in msgspec.msgpack.decode(b"\xdc\x00" + raw[:1] + raw[1:])], raw)
    if name in NUMBERED or name.startswith("live:"):
        return int(raw)
    if name == "bodies":
        return raw
    return _as_text(raw)


def _or_raw(read: Any, raw: bytes) -> Any:
    try:
        return read()
    except (ValueError, msgspec.MsgspecError):
        return raw


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value
