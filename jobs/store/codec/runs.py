"""Bytes in the slot of a run ⇄ what Python holds (positions: lua/include/node_fields.lua)."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import msgspec

from jobs.core.states import JobState
from jobs.core.workflow import Node, NodeView, RunFacts

_STATE = struct.Struct(">BBII18sH")
_NODE = struct.Struct(">IIIBBB")
_WORDS = ("", *(state.value for state in JobState))
_TEXTS = ("name", "state", "schedule", "started_by")
_NUMBERS = ("version", "fire_time_ms", "total", "lives", "deadline_ms", "stopped", "halts", "halts_told")
_JSONS = ("payload", "cancelled", "paused", "redo")

_pack = msgspec.msgpack.Encoder().encode
_unpack_node = msgspec.msgpack.Decoder(Node).decode
_node_from_json = msgspec.json.Decoder(Node).decode
_from_json = msgspec.json.Decoder().decode
_to_json = msgspec.json.Encoder().encode

ALWAYS = 1
"""Flag of a node that runs in a cancelled run too."""

NO_JOB = 2
"""Flag of a node that is no job: it opens into others, or waits for somebody."""


STOP = "stop:"
"""Before the id of a job: the fact that it is to be asked to stop."""


class NodeState(NamedTuple):
    """How a node stands."""

    word: str
    is_released: bool
    version: int
    again: int
    released_at: int
    started_at: int
    ended_at: int
    attempts: int
    job: str


def decode_state(raw: bytes) -> NodeState:
    code, released, version, again, times, attempts = _STATE.unpack_from(raw)
    return NodeState(
        word=_WORDS[code],
        is_released=released > 0,
        version=version,
        again=again,
        released_at=int.from_bytes(times[:6], "big"),
        started_at=int.from_bytes(times[6:12], "big"),
        ended_at=int.from_bytes(times[12:], "big"),
        attempts=attempts,
        job=raw[_STATE.size :].decode(),
    )


class StoredNode(NamedTuple):
    """What a node is, besides its edges."""

    node: Node
    wanted: int
    parents: int
    laid: int
    scope: str
    flags: int
    depth: int


def decode_node(raw: bytes) -> StoredNode:
    wanted, parents, laid, flags, depth, length = _NODE.unpack_from(raw)
    scope_end = _NODE.size + length
    scope = raw[_NODE.size : scope_end].decode()
    packed = raw[scope_end:]
    node = _node_from_json(packed) if packed.startswith(b"{") else _unpack_node(packed)
    return StoredNode(node, wanted, parents, laid, scope, flags, depth)


def decode_json(raw: bytes | None) -> Any:
    """None where nothing is kept."""
    return _from_json(raw) if raw else None


def encode_node(node: Node) -> bytes:
    """Packed, which takes less room than JSON; as JSON where a number in its payload has more than 64 bits."""
    try:
        return _pack(msgspec.to_builtins(node, str_keys=True))
    except OverflowError:
        return _to_json(node)


def decode_view(rank: int, raw_state: bytes, raw_node: bytes, raw_error: bytes | None) -> NodeView:
    stored, state = decode_node(raw_node), decode_state(raw_state)
    return NodeView(
        key=stored.node.key,
        rank=rank,
        state=state.word,
        node=stored.node,
        scope=stored.scope,
        job=state.job or None,
        released_at_ms=state.released_at,
        started_at_ms=state.started_at,
        ended_at_ms=state.ended_at,
        attempts=state.attempts,
        error=_from_json(raw_error) if raw_error else None,
        version=state.version,
        again=state.again,
        is_released=state.is_released,
        is_whole=stored.laid == stored.parents,
    )


def encode_facts(facts: dict[str, Any]) -> list[Any]:
    """Field, value, field, value, …; what is None is left out."""
    found: list[Any] = []
    for name, value in facts.items():
        if value is not None:
            found += (name, _to_json(value) if name in _JSONS else value)
    return found


def decode_facts(run_id: str, raw: dict[bytes, bytes], counts: dict[bytes, bytes]) -> RunFacts:
    fields: dict[str, Any] = {name: raw[name.encode()].decode() for name in _TEXTS if name.encode() in raw}
    fields |= {name: int(raw[name.encode()]) for name in _NUMBERS if raw.get(name.encode())}
    fields |= {name: _from_json(raw[name.encode()]) for name in _JSONS if raw.get(name.encode())}
    return RunFacts(
        id=run_id,
        created_at_ms=int(raw.get(b"created_at") or 0),
        finished_at_ms=int(raw.get(b"finished_at") or 0),
        to_stop=tuple(name[len(STOP) :].decode() for name in raw if name.startswith(STOP.encode())),
        counts={word.decode(): int(count) for word, count in counts.items()},
        **fields,
    )
