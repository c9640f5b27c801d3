"""What was asked for.

A body is ``created_at`` and ``run_at`` (two big-endian doubles, ms, put there by the server), the length of the header
(2 bytes), the header (MessagePack array), and the payload: the caller's JSON, untouched. Lua reads the header and never
the payload.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from jobs.core.job import EARLIEST_MS, LATEST_MS, JobSpec
from jobs.exceptions import OptionInvalid

FORMAT = 1
"""Version of the body's layout. A worker that meets a higher one treats the job as corrupt rather than guess."""

TIMES = struct.Struct(">dd")
HEADER_AT = TIMES.size + 2
_HEADER_LIMIT = 0xFFFF - 512
"""What two bytes count, less room for what is added later: another priority, and the job that this one goes on for."""

_pack = msgspec.msgpack.Encoder().encode


def encode_header(spec: JobSpec) -> bytes:
    """Length and header of a body. OptionInvalid where it cannot be stored: too long, or no proper text."""
    extras: dict[str, Any] = {}
    if spec.tags:
        extras["tags"] = spec.tags
    if spec.meta:
        extras["meta"] = spec.meta
    if spec.redact:
        extras["redact"] = spec.redact
    if spec.unique:
        extras["unique"] = (spec.unique.key, spec.unique.until)
    for name in ("concurrency_key", "rate_key", "result_ttl", "schedule", "fire_time_ms", "workflow_run", "node"):
        value = getattr(spec, name)
        if value is not None:
            extras[name] = value
    fields = (
        FORMAT,
        spec.type,
        spec.priority,
        spec.max_retries,
        spec.max_crashes,
        *_shortly((spec.timeout,)),
        _shortly(spec.backoff),
        extras,
    )
    try:
        header = _pack(fields)
    except UnicodeEncodeError as error:
        raise OptionInvalid("Text with lone surrogates cannot be stored.") from error
    if len(header) > _HEADER_LIMIT:
        raise OptionInvalid(
            f"Tags, meta and keys take {len(header)} bytes; at most {_HEADER_LIMIT} fit.",
            fix="Put large values into the payload.",
        )
    return len(header).to_bytes(2, "big") + header


class Body(NamedTuple):
    created_at: int
    run_at: int
    type: str
    priority: int
    max_retries: int
    max_crashes: int
    timeout: float | None
    backoff: tuple[Any, ...]
    extras: dict[str, Any]
    payload: bytes


@lru_cache(maxsize=256)
def _shortly(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Whole numbers as integers, which take one byte for nine: every job that is kept has several of them."""
    return tuple(int(value) if isinstance(value, float) and value.is_integer() else value for value in values)


class _Header(msgspec.Struct, array_like=True):
    format: int
    type: str
    priority: int
    max_retries: int
    max_crashes: int
    timeout: float | None
    backoff: tuple[Any, ...]
    extras: dict[str, Any]


_decode_header = msgspec.msgpack.Decoder(_Header).decode
_decode_extras = msgspec.msgpack.Decoder(dict[str, Any]).decode


@lru_cache(maxsize=1024)
def header_in(raw: bytes) -> _Header:
    """The header that stands between length and payload.

    Jobs of one type and the same options have the same header; it is shared and must not be changed."""
    try:
        header = _decode_header(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a job header: {error}") from error
    if header.format > FORMAT:
        raise ValueError(f"job body of format {header.format}; this version reads up to {FORMAT}")
    return header


def decode_body(raw: bytes) -> Body:
    """ValueError where the bytes are not a body that this version can read."""
    try:
        created_at, run_at = TIMES.unpack_from(raw)
        times = int(created_at), int(run_at)
    except (struct.error, ValueError, OverflowError) as error:
        raise ValueError(f"not a job body: {error}") from error
    if not EARLIEST_MS <= min(times) <= max(times) <= LATEST_MS:
        raise ValueError("not a job body: no calendar has its times")
    payload_at = payload_start(raw)
    header = header_in(raw[HEADER_AT:payload_at])
    return Body(
        *times,
        header.type,
        header.priority,
        header.max_retries,
        header.max_crashes,
        header.timeout,
        header.backoff,
        header.extras,
        raw[payload_at:],
    )


def with_meta(body: Body, meta: dict[str, str]) -> bytes:
    """Length and header of a body like this one, with more ``meta``."""
    extras = {**body.extras, "meta": {**body.extras.get("meta", {}), **meta}}
    header = _pack((FORMAT, *body[2:8], extras))
    return len(header).to_bytes(2, "big") + header


def payload_start(raw_body: bytes) -> int:
    """Where the payload begins in a body."""
    return HEADER_AT + int.from_bytes(raw_body[TIMES.size : HEADER_AT], "big")


def extras_in(raw: bytes) -> dict[str, Any]:
    """The last field of a header by itself. ValueError where it cannot be read."""
    try:
        return _decode_extras(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a job header: {error}") from error
