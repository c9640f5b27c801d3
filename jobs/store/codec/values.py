"""Single values, as far as the bytes can still be read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from jobs.core.job import EARLIEST_MS, LATEST_MS, moment

_from_json = msgspec.json.Decoder().decode


def whole_number(raw: bytes | None) -> int | None:
    """The number that the bytes spell; None where they spell none."""
    try:
        return int(raw) if raw else None
    except ValueError:
        return None


def moment_or_none(milliseconds: float | None) -> datetime | None:
    """The moment of this many server ms; None also for times that no calendar has: the bytes went bad."""
    return moment(milliseconds) if milliseconds and EARLIEST_MS <= milliseconds <= LATEST_MS else None


def json_or_none(raw: bytes | None) -> Any:
    if not raw:
        return None
    try:
        return _from_json(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
