"""Lines of ``ctx.log`` as bytes: MessagePack of time (ms), level, message and fields, each of them within limits."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from jobs.core.job import moment
from jobs.core.job_log import LogLine

MESSAGE_LIMIT = 4_000
"""Characters of one message."""

FIELD_LIMIT = 8_000
"""Characters of one field's text: a traceback fits."""

FIELDS_LIMIT = 16_000
"""Bytes of all fields of one line."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def encode_line(at_ms: int, level: int, message: str, fields: dict[str, Any]) -> bytes:
    """Whatever the handler gave: what is no JSON becomes its text, and what is too long is cut and says so."""
    return _pack((at_ms, logging.getLevelName(level), _text(message, MESSAGE_LIMIT), _within_limit(fields)))


def decode_line(attempt: int, number: int, raw: bytes) -> LogLine:
    """ValueError where the bytes are no line."""
    try:
        at_ms, level, message, fields = _unpack(raw)
        return LogLine(attempt=attempt, number=number, at=moment(at_ms), level=level, message=message, fields=fields)
    except (msgspec.MsgspecError, TypeError, OverflowError, OSError) as error:
        raise ValueError(f"not a log line: {error}") from error


def _within_limit(fields: dict[str, Any]) -> dict[str, Any]:
    shown = {_text(str(name), 100): _plain(value) for name, value in fields.items()}
    size = len(msgspec.json.encode(shown))
    return shown if size <= FIELDS_LIMIT else {"cut": f"{len(fields)} fields of {size} bytes"}


def _plain(value: Any) -> Any:
    """JSON that means the same, or the value's text."""
    if isinstance(value, str):
        return _text(value, FIELD_LIMIT)
    try:
        plain = msgspec.json.decode(msgspec.json.encode(value, enc_hook=_shown))
        _pack(plain)  # JSON knows larger numbers
        return plain
    except Exception:  # the value's own code runs here
        return _shown(value)


def _shown(value: Any) -> str:
    try:
        return _text(str(value), FIELD_LIMIT)
    except Exception as error:
        return f"(a {type(value).__name__} that cannot be shown: {type(error).__name__})"


def _text(text: str, limit: int) -> str:
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} more characters)"
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates, which no UTF-8 can carry
