"""What a job is: the request for it, what a worker holds of it, and what a reader sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from jobs.core.states import TERMINAL, JobState


class Route(NamedTuple):
    """Where a job lives: one partition of one version of one pool."""

    pool: str
    version: int
    partition: int

    def __str__(self) -> str:
        return f"{self.pool}.{self.version}.{self.partition}"


class Unique(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on a key: while it holds, an enqueue of the same type and key makes no second job.

    ``until``: ``"finished"`` (while the job is live), ``"started"`` (until its first attempt starts) or a number of
    seconds from the enqueue. ``on_duplicate``: ``"return"``, ``"raise"`` or ``"replace"`` (the waiting one is
    cancelled).
    """

    key: str
    until: str | float = "finished"
    on_duplicate: str = "return"


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that an enqueue asks for, except the payload. Already merged with the job type's defaults and checked."""

    type: str
    pool: str = "default"
    priority: int = 0  # -100..100, higher first
    delay_ms: int = 0  # counted by the server from its own now
    run_at_ms: int | None = None  # absolute, Unix milliseconds; wins over delay_ms
    max_retries: int = 3
    max_crashes: int = 3
    timeout: float | None = 30.0  # seconds
    backoff: tuple[Any, ...] = ("exponential", 1.0, 60.0, 0.2)  # see jobs.core.retry
    tags: tuple[str, ...] = ()
    meta: dict[str, str] = {}
    id: str | None = None  # the caller's id
    unique: Unique | None = None
    concurrency_key: str | None = None
    rate_key: str | None = None
    result_ttl: float | None = None  # seconds; None = the default retention
    durability: str = "memory"
    schedule: str | None = None
    fire_time_ms: int | None = None
    workflow_run: str | None = None
    node: str | None = None
    redact: tuple[str, ...] = ()  # arguments that people are not shown, also where nobody knows the type


class EnqueueRequest(msgspec.Struct):
    """One enqueue on its way to the store: what enqueue middleware sees and may change. Payloads are JSON objects.

    ``on_commit``: True or the alias of a database whose commit it waits for.
    """

    spec: JobSpec
    payloads: Sequence[bytes]
    on_commit: bool | str = False


class Enqueued(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one enqueue. ``existing``: the job was there before (unique key)."""

    id: str
    type: str
    pool: str
    state: str
    run_at: datetime
    existing: bool = False


class LeasedJob(msgspec.Struct, kw_only=True, gc=False):
    """What a worker holds while it runs one attempt. Times are Unix milliseconds of the server's clock."""

    id: str
    route: Route
    token: str  # the fence: compared by every later change
    type: str
    payload: bytes  # JSON object
    attempt: int  # the number of this attempt, from 1
    errors: int  # failed attempts before this one
    crashes: int
    fencing_token: int  # grows with every lease of this job
    priority: int
    max_retries: int
    max_crashes: int
    timeout: float | None
    backoff: tuple[Any, ...]
    extras: dict[str, Any]  # tags, meta, schedule, … as in the body's header
    leased_at: int
    resubmissions: int = 0


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try. ``outcome``: running, succeeded, failed, crashed, cancelled, released."""

    attempt: int
    worker: str
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str
    error: dict[str, Any] | None = None


SHORTEST_PATIENCE, LONGEST_PATIENCE = 10.0, 60.0
"""Seconds without a word of progress after which a running job is called stalled: never sooner, never later."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as read from the store at one moment."""

    id: str
    type: str
    pool: str
    state: JobState
    run_at: datetime
    priority: int
    payload: Any  # decoded JSON; None when the stored bytes are corrupt
    tags: list[str]
    meta: dict[str, str]
    created_at: datetime
    ready_at: datetime | None
    leased_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_retries: int
    crashes: int
    timeout: float | None
    progress: dict[str, Any] | None
    worker: str | None
    lease_expires_at: datetime | None
    fencing_token: int
    result: Any
    error: dict[str, Any] | None
    attempts: list[Attempt]
    unique_key: str | None
    schedule: str | None
    fire_time: datetime | None
    workflow_run: str | None
    node: str | None
    queue_version: int
    partition: int
    resubmissions: int
    cancel_requested: bool
    parked: bool = False  # ready, but no worker that is allowed to run it knows its type
    max_crashes: int = 3
    progress_at: datetime | None = None  # when ``progress`` was told
    concurrency_key: str | None = None
    rate_key: str | None = None
    throttled: bool = False  # ready, but a limit of its type holds it back
    redact: tuple[str, ...] = ()  # arguments that its type hid when it was enqueued

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_running(self) -> bool:
        """Leased and started: what people call running."""
        return self.state == JobState.LEASED and self.started_at is not None

    @property
    def begun(self) -> int:
        """Attempts that have begun: ``attempt`` counts one that a worker has taken and no slot has begun yet."""
        return self.attempt - (self.state == JobState.LEASED and self.started_at is None)

    @property
    def moved_to(self) -> str:
        """The id of the job that goes on for it, where it was moved to another pool; else empty."""
        result = self.result if self.state != JobState.SUCCEEDED else None
        return str(result["moved_to"]) if isinstance(result, dict) and "moved_to" in result else ""

    @property
    def since(self) -> datetime:
        """Since when it is in its present state; of a job that waits for a time or a parent, since when it exists."""
        at = {JobState.READY: self.ready_at, JobState.LEASED: self.leased_at}.get(self.state, self.finished_at)
        return at or self.created_at

    def silence(self, now: datetime) -> timedelta | None:
        """How long the running attempt has told no progress, once that is long enough to call it stalled; else None.

        Half its time limit, but from 10 to 60 seconds: a minute where there is no limit. A handler that tells none, or
        has told that all is done, is never called so.
        """
        if not self.is_running or not self.progress or self.progress_at is None:
            return None
        current, total = self.progress["current"], self.progress["total"]
        if self.progress_at < (self.started_at or self.created_at) or (total is not None and current >= total):
            return None
        patience = min(max((self.timeout or LONGEST_PATIENCE * 2) / 2, SHORTEST_PATIENCE), LONGEST_PATIENCE)
        silence = now - self.progress_at
        return silence if silence >= timedelta(seconds=patience) else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a job (CONTRACT section 5): the same on command line, HTTP and pages."""
        return {name: _jsonable(getattr(self, name)) for name in JSON_FIELDS}


JSON_FIELDS = tuple(
    name
    for name in Job.__struct_fields__
    if name not in {"max_crashes", "concurrency_key", "rate_key", "throttled", "redact"}
)


EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The times that Python's calendar has, Unix milliseconds."""


def moment(milliseconds: float) -> datetime:
    """Unix milliseconds → aware UTC datetime."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def moment_or_none(milliseconds: float | None) -> datetime | None:
    """The same where 0 and None mean "not yet"."""
    return moment(milliseconds) if milliseconds else None


def iso(at: datetime | None) -> str | None:
    """UTC ISO 8601 with milliseconds and ``Z``."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Attempt):
        return {name: _jsonable(getattr(value, name)) for name in Attempt.__struct_fields__}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value
