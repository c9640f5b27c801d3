"""What the lease script gave, as workers take it."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.job import LeasedJob, Route
from jobs.store.codec.bodies import HEADER_AT, TIMES, extras_in, header_in, payload_start
from jobs.store.codec.records import RECORD

_pack = msgspec.msgpack.Encoder().encode


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
        if self._like is not None and raw_body.startswith(self._head, TIMES.size):
            job = self._like.__copy__()
            job.payload = raw_body[self._payload_at :]
        elif self._like is not None and raw_body.startswith(self._shared, HEADER_AT):
            payload_at = payload_start(raw_body)
            job = self._like.__copy__()
            job.extras = extras_in(raw_body[self._extras_at : payload_at])
            job.payload = raw_body[payload_at:]
        else:
            self._learn(raw_body)
            job = self._like.__copy__()
            job.payload = raw_body[self._payload_at :]
        job.id = job_id.decode()
        if raw_record:
            _, job.attempt, job.errors, job.crashes, job.fencing_token, _, job.resubmissions, *_ = RECORD.unpack_from(
                raw_record
            )
        return job

    def _learn(self, raw_body: bytes) -> None:
        payload_at = payload_start(raw_body)
        header = header_in(raw_body[HEADER_AT:payload_at])
        self._head, self._payload_at = raw_body[TIMES.size : payload_at], payload_at
        extras = _pack(header.extras)  # they stand last
        self._extras_at = payload_at - len(extras) if self._head.endswith(extras) else payload_at
        self._shared = raw_body[HEADER_AT : self._extras_at]
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
