"""Bytes in Redis ⇄ what Python holds.

A body is ``created_at`` and ``run_at`` (two big-endian doubles, ms, put there by the server), the length of the header
(2 bytes), the header (MessagePack array), and the payload: the caller's JSON, untouched. Lua reads the header and never
the payload.
"""

from __future__ import annotations

import re
import secrets
import struct
import time
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from jobs.core.job import EARLIEST_MS, LATEST_MS, Attempt, Job, JobSpec, LeasedJob, Route, moment
from jobs.core.states import JobState
from jobs.exceptions import OptionInvalid

FORMAT = 1
"""Version of the body's layout. A worker that meets a higher one treats the job as corrupt rather than guess."""

_TIMES = struct.Struct(">dd")
_HEADER_AT = _TIMES.size + 2
_HEADER_LIMIT = 0xFFFF

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_from_json = msgspec.json.Decoder().decode

CORRUPT_ERROR = {"type": "CorruptJob", "message": "What is stored of this job cannot be read.", "traceback": ""}

# --- ids ---------------------------------------------------------------------------------------------------------

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford: sorts like the number, no look-alikes
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]


_NUMBER = re.compile(r"[0-9]{1,9}\Z")


def _base32(number: int, pairs: int) -> str:
    text = ""
    for _ in range(pairs):
        number, low = divmod(number, 1024)
        text = _PAIRS[low] + text
    return text


def new_ids(route: Route, count: int) -> list[str]:
    """Ids that carry their route, sort by time (ms), and within one call by their order.

    50 bits of time, 50 of chance; the chance of one call grows by one per id, from a start below 2^49.
    """
    stamp = _base32(time.time_ns() // 1_000_000, 5)
    chance = secrets.randbits(49)
    tail = f"-{route}"
    ids: list[str] = []
    while len(ids) < count:
        high, low = divmod(chance, 1024)
        head = stamp + _base32(high, 4)  # only the last pair of letters changes from one id to the next
        ids += [head + pair + tail for pair in _PAIRS[low : low + count - len(ids)]]
        chance = (high + 1) * 1024
    return ids


def new_head() -> str:
    """The first part of such an id, which says when it was made and nothing of a route."""
    return _base32(time.time_ns() // 1_000_000, 5) + _base32(secrets.randbits(50), 5)


def derived_id(time_ms: int, name: str, route: Route) -> str:
    """An id of the same form, made of a time and a name instead of chance: the same for the same."""
    digest = blake2b(f"{name}\0{time_ms}".encode(), digest_size=7).digest()
    return f"{_base32(max(0, time_ms), 5)}{_base32(int.from_bytes(digest, 'big') >> 6, 5)}-{route}"


def route_in(job_id: str) -> Route | None:
    """The route that an id of ours carries; None for a caller's id."""
    if len(job_id) < 26 or job_id[20] != "-":
        return None
    if not all(letter in _ALPHABET for letter in job_id[:20]):
        return None
    return parse_route(job_id[21:])


def parse_route(text: str) -> Route | None:
    """``pool.version.partition`` → Route; None where the text is no route."""
    pool, version, partition = ([*text.rsplit(".", 2), "", ""])[:3]
    if pool and _NUMBER.match(version) and _NUMBER.match(partition):
        return Route(pool, int(version), int(partition))
    return None


def claimed_route(holder: str) -> Route | None:
    """The route that an entry of the directory of callers' ids names: ``pool.version.partition``, ``~`` and the void
    that its claimant had seen, if any (``jobs.engine.holders``)."""
    return parse_route(holder.partition("~")[0])


def new_token() -> str:
    """A lease's token: 96 random bits. A counter would be no fence: two timelines of one server can count alike."""
    return secrets.token_urlsafe(12)


# --- bodies ------------------------------------------------------------------------------------------------------


def encode_header(spec: JobSpec) -> bytes:
    """Length and header of a body. OptionInvalid where it cannot be stored: too long, or no proper text."""
    extras: dict[str, Any] = {}
    if spec.tags:
        extras["tags"] = spec.tags
    if spec.meta:
        extras["meta"] = spec.meta
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
        spec.timeout,
        spec.backoff,
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
def _cached_header(raw: bytes) -> _Header:
    """Jobs of one type and the same options have the same header; it is shared and must not be changed."""
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
        created_at, run_at = _TIMES.unpack_from(raw)
        times = int(created_at), int(run_at)
    except (struct.error, ValueError, OverflowError) as error:
        raise ValueError(f"not a job body: {error}") from error
    if not EARLIEST_MS <= min(times) <= max(times) <= LATEST_MS:
        raise ValueError("not a job body: no calendar has its times")
    payload_at = _payload_at(raw)
    header = _cached_header(raw[_HEADER_AT:payload_at])
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


# --- records (positions: lua/include/record_fields.lua) ------------------------------------------------------------


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


_RECORD = struct.Struct(">BIIIIBIBQQQQ")
_STARTED_AT = struct.Struct(">Q")
encode_start = _STARTED_AT.pack
"""When an attempt began, server ms, as the completion script takes it."""

_STATE_OF = ("", *(state.value for state in JobState))


def decode_record(raw: bytes) -> Record:
    """ValueError where the bytes are no record."""
    try:
        code, *numbers = _RECORD.unpack_from(raw)
        if code == 0:
            raise ValueError("it has no state")
        token_at = _RECORD.size + 1
        worker_at = token_at + raw[_RECORD.size] + 1
        start_at = worker_at + raw[worker_at - 1]
        token, worker = raw[token_at : worker_at - 1].decode(), raw[worker_at:start_at].decode()
        (started_at,) = _STARTED_AT.unpack_from(raw, start_at)
        place = whole_number(raw[start_at + _STARTED_AT.size :]) or 0
        return Record._make([_STATE_OF[code], *numbers, token, worker, started_at, place])
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"not a job record: {error}") from error


class LeaseDecoder:
    """Reads what the lease script gave under one token. Jobs of one lease call are mostly alike: what neighbours share
    is read once. Where they differ in their keys only, the keys are what is read of each."""

    def __init__(self, route: Route, token: str, now: int) -> None:
        self._route = route
        self._token = token
        self._now = now
        self._head = b""  # length and header of the last body
        self._payload_at = 0
        self._shared = b""  # its header up to the extras
        self._extras_at = 0
        self._like: Any = None

    def decode(self, job_id: bytes, raw_record: bytes, raw_body: bytes | None) -> LeasedJob:
        """One job; an empty record stands for a first lease. ValueError where it cannot be read."""
        if not raw_body:
            raise ValueError("there is no job body")
        job: LeasedJob
        if self._like is not None and raw_body.startswith(self._head, _TIMES.size):
            job = self._like.__copy__()
            job.payload = raw_body[self._payload_at :]
        elif self._like is not None and raw_body.startswith(self._shared, _HEADER_AT):
            payload_at = _payload_at(raw_body)
            job = self._like.__copy__()
            job.extras = _extras_in(raw_body[self._extras_at : payload_at])
            job.payload = raw_body[payload_at:]
        else:
            self._learn(raw_body)
            job = self._like.__copy__()
            job.payload = raw_body[self._payload_at :]
        job.id = job_id.decode()
        if raw_record:
            _, job.attempt, job.errors, job.crashes, job.fencing_token, _, job.resubmissions, *_ = _RECORD.unpack_from(
                raw_record
            )
        return job

    def _learn(self, raw_body: bytes) -> None:
        payload_at = _payload_at(raw_body)
        header = _cached_header(raw_body[_HEADER_AT:payload_at])
        self._head, self._payload_at = raw_body[_TIMES.size : payload_at], payload_at
        extras = _pack(header.extras)  # they stand last
        self._extras_at = payload_at - len(extras) if self._head.endswith(extras) else payload_at
        self._shared = raw_body[_HEADER_AT : self._extras_at]
        self._like = LeasedJob(
            id="",
            route=self._route,
            token=self._token,
            type=header.type,
            payload=b"",
            attempt=1,
            errors=0,
            crashes=0,
            fencing_token=1,
            priority=header.priority,
            max_retries=header.max_retries,
            max_crashes=header.max_crashes,
            timeout=header.timeout,
            backoff=header.backoff,
            extras=header.extras,
            leased_at=self._now,
        )


def _payload_at(raw_body: bytes) -> int:
    return _HEADER_AT + int.from_bytes(raw_body[_TIMES.size : _HEADER_AT], "big")


def _extras_in(raw: bytes) -> dict[str, Any]:
    try:
        return _decode_extras(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a job header: {error}") from error


# --- what people read ----------------------------------------------------------------------------------------------


class RawJob(NamedTuple):
    """One entry of job_read.lua's reply."""

    body: bytes | None
    record: bytes | None
    waiting: bytes
    deadline: bytes | None
    attempts: bytes | None
    result: bytes | None
    progress: bytes | None
    in_line: bytes


def decode_job(route: Route, job_id: str, raw: RawJob) -> Job | None:
    """The job, None where there is none. What cannot be read is shown as such, never raised."""
    if not raw.record and not raw.body:
        return None
    body, record, problem = _readable(raw)
    state = record.state or raw.waiting.decode()
    if not state:
        return None
    ended = _decode_attempts(raw.attempts)
    attempts = ended + _current_attempt(state, record)
    run_at = record.run_at if 0 < record.run_at <= LATEST_MS else body.run_at
    was_ready = state == JobState.READY or record.leased_at
    ready_at = record.ready_at or (max(body.created_at, body.run_at) if was_ready else 0)
    error = problem or (attempts[-1].error if attempts and state in (JobState.DEAD, JobState.RETRY_WAIT) else None)
    extras = body.extras
    unique = extras.get("unique")
    return Job(
        id=job_id,
        type=body.type,
        pool=route.pool,
        state=JobState(state),
        run_at=moment(run_at),
        priority=body.priority,
        payload=_json_or_none(body.payload),
        tags=list(extras.get("tags", ())),
        meta=dict(extras.get("meta", {})),
        created_at=moment(body.created_at),
        ready_at=_moment_or_none(ready_at),
        leased_at=_moment_or_none(record.leased_at),
        started_at=_moment_or_none(record.started_at),
        finished_at=_moment_or_none(record.finished_at),
        attempt=record.attempt,
        max_retries=body.max_retries,
        crashes=record.crashes,
        timeout=body.timeout,
        progress=_decode_progress(raw.progress, is_done=state == JobState.SUCCEEDED),
        worker=record.worker or None,
        lease_expires_at=_moment_or_none(float(raw.deadline)) if raw.deadline and state == JobState.LEASED else None,
        fencing_token=record.fence,
        result=_json_or_none(raw.result),
        error=error,
        attempts=attempts,
        unique_key=unique[0] if unique else None,
        progress_at=_progress_at(raw.progress),
        schedule=extras.get("schedule"),
        fire_time=_moment_or_none(extras.get("fire_time_ms")),
        workflow_run=extras.get("workflow_run"),
        node=extras.get("node"),
        queue_version=route.version,
        partition=route.partition,
        resubmissions=record.resubmissions,
        cancel_requested=bool(record.cancel),
        parked=state == JobState.READY and not raw.in_line,
        throttled=state == JobState.READY and raw.in_line == b"throttled",
        max_crashes=body.max_crashes,
        concurrency_key=extras.get("concurrency_key"),
        rate_key=extras.get("rate_key"),
    )


def _moment_or_none(milliseconds: float | None) -> datetime | None:
    """None also for times that no calendar has: the bytes went bad."""
    return moment(milliseconds) if milliseconds and EARLIEST_MS <= milliseconds <= LATEST_MS else None


_NO_BODY = Body(0, 0, "", 0, 0, 0, None, (), {}, b"")


def _readable(raw: RawJob) -> tuple[Body, Record, dict[str, Any] | None]:
    body, record, problem = _NO_BODY, Record(), None
    try:
        body = decode_body(raw.body or b"")
    except ValueError:
        problem = CORRUPT_ERROR
    if raw.record:
        try:
            record = decode_record(raw.record)
            JobState(record.state)
        except ValueError:
            record, problem = Record(state=JobState.DEAD), CORRUPT_ERROR
    return body, record, problem


def _current_attempt(state: str, record: Record) -> list[Attempt]:
    """The attempt that no history entry tells of: the running one, or the one that succeeded."""
    if state == JobState.SUCCEEDED:
        outcome, finished_at = "succeeded", record.finished_at
    elif state == JobState.LEASED and record.started_at:
        outcome, finished_at = "running", 0
    else:
        return []
    return [
        Attempt(
            attempt=record.attempt,
            worker=record.worker,
            started_at=_moment_or_none(record.started_at),
            finished_at=_moment_or_none(finished_at),
            outcome=outcome,
        )
    ]


def _decode_attempts(raw: bytes | None) -> list[Attempt]:
    if not raw:
        return []
    entries = raw[1:]
    try:
        # The entries are MessagePack values one after the other: an array header in front makes them one value.
        decoded = _unpack(b"\xdc" + raw[0].to_bytes(2, "big") + entries)
        return [
            Attempt(
                attempt=attempt,
                worker=worker,
                started_at=_moment_or_none(started_at),
                finished_at=_moment_or_none(finished_at),
                outcome=outcome,
                error=_from_json(error) if error else None,
            )
            for attempt, worker, started_at, finished_at, outcome, error in decoded
        ]
    except (msgspec.MsgspecError, ValueError, TypeError):
        return []


def last_error(raw_attempts: bytes) -> dict[str, Any] | None:
    """What went wrong in the last attempt that is kept; None where nothing did."""
    attempts = _decode_attempts(raw_attempts)
    return attempts[-1].error if attempts else None


def whole_number(raw: bytes | None) -> int | None:
    """The number that the bytes spell; None where they spell none."""
    try:
        return int(raw) if raw else None
    except ValueError:
        return None


def ready_since(raw_record: bytes | None, raw_body: bytes | None) -> int:
    """Since when a ready job is ready, server ms; 0 where it cannot be read."""
    try:
        if raw_record and (ready_at := decode_record(raw_record).ready_at):
            return ready_at
        body = decode_body(raw_body or b"")
    except ValueError:
        return 0
    return max(body.created_at, body.run_at)


def encode_progress(current: float, total: float | None, message: str) -> bytes:
    text = message.encode("utf-8", "backslashreplace").decode()  # lone surrogates, which no UTF-8 can carry
    return _pack((current, total, text))


def _decode_progress(raw: bytes | None, *, is_done: bool) -> dict[str, Any] | None:
    """What the handler told last; of a job that is done, all of it."""
    if not raw:
        return None
    try:
        current, total, message = _unpack(raw[8:])  # behind the time when it was told
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
    return {"current": total if is_done and total is not None else current, "total": total, "message": message}


def _json_or_none(raw: bytes | None) -> Any:
    if not raw:
        return None
    try:
        return _from_json(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _progress_at(raw: bytes | None) -> datetime | None:
    return _moment_or_none(int.from_bytes(raw[:8], "big")) if raw else None
