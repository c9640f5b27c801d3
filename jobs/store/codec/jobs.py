"""Jobs as people read them: what cannot be read is shown as such, never raised."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.core.job import LATEST_MS, Attempt, Job, Route, moment
from jobs.core.states import JobState
from jobs.store.codec.bodies import Body, decode_body
from jobs.store.codec.records import Record, decode_record
from jobs.store.codec.values import json_or_none, moment_or_none

CORRUPT_ERROR = {"type": "CorruptJob", "message": "What is stored of this job cannot be read.", "traceback": ""}

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_from_json = msgspec.json.Decoder().decode


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
        payload=json_or_none(body.payload),
        tags=list(extras.get("tags", ())),
        meta=dict(extras.get("meta", {})),
        created_at=moment(body.created_at),
        ready_at=moment_or_none(ready_at),
        leased_at=moment_or_none(record.leased_at),
        started_at=moment_or_none(record.started_at),
        finished_at=moment_or_none(record.finished_at),
        attempt=record.attempt,
        max_retries=body.max_retries,
        crashes=record.crashes,
        timeout=body.timeout,
        progress=_decode_progress(raw.progress, is_done=state == JobState.SUCCEEDED),
        worker=record.worker or None,
        lease_expires_at=moment_or_none(float(raw.deadline)) if raw.deadline and state == JobState.LEASED else None,
        fencing_token=record.fence,
        result=json_or_none(raw.result),
        error=error,
        attempts=attempts,
        unique_key=unique[0] if unique else None,
        progress_at=_progress_at(raw.progress),
        schedule=extras.get("schedule"),
        fire_time=moment_or_none(extras.get("fire_time_ms")),
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
        redact=tuple(extras.get("redact", ())),
    )


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
            started_at=moment_or_none(record.started_at),
            finished_at=moment_or_none(finished_at),
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
                started_at=moment_or_none(started_at),
                finished_at=moment_or_none(finished_at),
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


def _progress_at(raw: bytes | None) -> datetime | None:
    return moment_or_none(int.from_bytes(raw[:8], "big")) if raw else None
