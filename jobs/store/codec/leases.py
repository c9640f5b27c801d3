"""What the lease script gave, as workers take it."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.job import LeasedJob, Route
from jobs.store.codec.bodies import HEADER_AT, extras_in, header_in, payload_start
from jobs.store.codec.records import RECORD

_pack = msgspec.msgpack.Encoder().encode


class LeaseDecoder:
    """Reads what the lease script gave under one token. Jobs of one lease call are mostly alike: what neighbours share
    is read once. Where they differ in their keys only, the keys are what is read of each."""

    def __init__(self, route: Route, token: str, now: int) -> None:
        self._route = route
        self._token = token
        self._now = now
        self._head = b""  # of the last body: all that stands before the payload
        self._shared = b""  # its header up to the extras, where that is known
        self._extras_at = 0
        self._like: Any = None

    def decode(self, job_id: bytes, raw_record: bytes | None, head: bytes, rest: bytes | None) -> LeasedJob:
        """One job; no record stands for a first lease. ``rest``: what its body has behind ``head``, which is empty or
        all that stands before the payload. ValueError where it cannot be read."""
        if head is not self._head or not head:
            if not head:
                head, rest = _split(rest)
            self._look_at(head)
        job: LeasedJob = self._like.__copy__()
        job.id = job_id.decode()
        job.payload = rest or b""
        if raw_record:
            _, job.attempt, job.errors, job.crashes, job.fencing_token, _, job.resubmissions, *_ = RECORD.unpack_from(
                raw_record
            )
        return job

    def _look_at(self, head: bytes) -> None:
        if self._like is not None and head[HEADER_AT:] != self._head[HEADER_AT:]:
            if not self._shared:
                self._look_for_extras()
            if head.startswith(self._shared, HEADER_AT):
                self._like.extras = extras_in(head[self._extras_at :])
            else:
                self._like, self._head = None, b""
        if self._like is None:
            self._learn(head)
        self._head = head

    def _look_for_extras(self) -> None:
        """In the last head, once one comes that differs: a single job does without."""
        extras = _pack(self._like.extras)  # they stand last
        self._extras_at = len(self._head) - len(extras) if self._head.endswith(extras) else len(self._head)
        self._shared = self._head[HEADER_AT : self._extras_at]

    def _learn(self, head: bytes) -> None:
        header = header_in(head[HEADER_AT:])
        self._shared = b""
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


def _split(raw_body: bytes | None) -> tuple[bytes, bytes]:
    """A whole body: what stands before the payload, and that."""
    if not raw_body:
        raise ValueError("there is no job body")
    payload_at = payload_start(raw_body)
    return raw_body[:payload_at], raw_body[payload_at:]
