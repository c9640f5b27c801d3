"""What became of a job: its state record (positions: lua/include/record_fields.lua)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from jobs.core.states import JobState
from jobs.store.codec.values import whole_number


class Record(NamedTuple):
    state: str = ""
    attempt: int = 0
    errors: int = 0
    crashes: int = 0
    fence: int = 0
    lost: int = 0
    resubmissions: int = 0
    cancel: int = 0
    ready_at: int = 0
    leased_at: int = 0
    finished_at: int = 0
    run_at: int = 0
    token: str = ""
    worker: str = ""
    started_at: int = 0
    place: int = 0


RECORD = struct.Struct(">BIIIIBIBQQQQ")
_STARTED_AT = struct.Struct(">Q")
encode_run = struct.Struct(">QH").pack
"""When attempts began (server ms) and how many they are, as the completion script takes it."""

_STATE_OF = ("", *(state.value for state in JobState))


def decode_record(raw: bytes) -> Record:
    """ValueError where the bytes are no record."""
    try:
        code, *numbers = RECORD.unpack_from(raw)
        if code == 0:
            raise ValueError("it has no state")
        token_at = RECORD.size + 1
        worker_at = token_at + raw[RECORD.size] + 1
        start_at = worker_at + raw[worker_at - 1]
        token, worker = raw[token_at : worker_at - 1].decode(), raw[worker_at:start_at].decode()
        (started_at,) = _STARTED_AT.unpack_from(raw, start_at)
        place = whole_number(raw[start_at + _STARTED_AT.size :]) or 0
        return Record._make([_STATE_OF[code], *numbers, token, worker, started_at, place])
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"not a job record: {error}") from error
