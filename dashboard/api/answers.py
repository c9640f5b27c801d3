"""The shapes of answers, for the OpenAPI document. Nothing is made of these: documents come from ``jobs.api`` as they
are, and a test holds them against what is written here.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

Moment = Annotated[str, Field(description="UTC, ISO 8601 with milliseconds and Z.")]
Json = dict[str, Any]


class Attempt(BaseModel):
    attempt: int
    worker: str
    started_at: Moment | None
    finished_at: Moment | None
    outcome: Annotated[str, Field(description="running, succeeded, failed, crashed, cancelled or released.")]
    error: Json | None


class Handle(BaseModel):
    """A job that was just enqueued."""

    id: str
    type: str
    pool: str
    state: str
    run_at: Moment | None
    existing: Annotated[bool, Field(description="It was there before: its unique key was taken.")]


class Job(BaseModel):
    """A job as people may see it: values that are secrets are masked."""

    id: str
    type: str
    pool: str
    state: str
    run_at: Moment
    priority: int
    payload: Any
    tags: list[str]
    meta: dict[str, str]
    created_at: Moment
    ready_at: Moment | None
    leased_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    attempt: Annotated[int, Field(description="Number of the attempt; 0 before the first.")]
    max_retries: int
    crashes: int
    timeout: Annotated[float | None, Field(description="Seconds of one attempt.")]
    progress: Json | None
    worker: str | None
    lease_expires_at: Moment | None
    fencing_token: int
    result: Any
    error: Json | None
    attempts: list[Attempt]
    unique_key: str | None
    schedule: str | None
    fire_time: Moment | None
    workflow_run: str | None
    node: str | None
    queue_version: int
    partition: int
    resubmissions: int
    cancel_requested: bool
    parked: Annotated[bool, Field(description="Ready, and no worker that may run it knows its type.")]


class Reason(BaseModel):
    code: str
    message: str
    also: list[Any]


class JobWithReason(Job):
    reason: Annotated[Reason | None, Field(description="Why it does not run.")]


class Deleted(BaseModel):
    id: str
    deleted: bool


class Logs(BaseModel):
    lines: list[Json]
    gone: Annotated[dict[str, int], Field(description="Attempt → lines that made room for newer ones.")]


class Page(BaseModel):
    next_cursor: Annotated[str | None, Field(description="Where the next page begins; null: there is none.")]


class Jobs(Page):
    items: list[Job]


class Handles(Page):
    items: list[Handle]


class Group(BaseModel):
    """Dead jobs that died of one error."""

    fingerprint: str
    error_type: str
    message: str
    pattern: Annotated[str, Field(description="What all their messages say; the message is that of the newest.")]
    place: str
    count: int
    first_seen: Moment | None
    last_seen: Moment | None
    types: list[str]
    pools: list[str]
    sample: Annotated[str, Field(description="The id of the newest.")]
    hours: Annotated[list[int], Field(description="How many died in each of the last 24 hours.")]


class Groups(Page):
    items: list[Group]


class Held(BaseModel):
    """A pause."""

    by: str
    at: Moment
    reason: str
    until: Moment | None


class StatusPool(BaseModel):
    name: str
    paused: Held | None
    slots: Annotated[int, Field(description="Wanted, per worker process.")]
    slots_actual: Annotated[int, Field(description="There, over all workers.")]
    workers: int
    max_running: int | None
    max_pending: int | None
    ready: int
    scheduled: int
    retry_wait: int
    leased: int
    dead: int
    oldest_ready_age_seconds: float | None
    predicted_wait_seconds: float | None
    throughput_per_second: float


class Pool(StatusPool):
    load: Annotated[
        float | None,
        Field(description="(ready + running) ÷ slots, without parked jobs; null: there are no slots."),
    ]


class Pools(Page):
    items: list[Pool]


class Status(BaseModel):
    paused: Held | None
    hosts: int
    workers: int
    server_time: Moment
    states: dict[str, int]
    pools: list[StatusPool]


class Spread(BaseModel):
    """Seconds; null where nothing was measured."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class Stats(BaseModel):
    server_time: Moment
    hosts: int
    workers: int
    states: dict[str, int]
    pools: list[Pool]
    types: Annotated[dict[str, dict[str, int]], Field(description="Job type → figure → total since ever.")]
    minutes: float
    wait: Annotated[Spread, Field(description="From ready to taken by a worker.")]
    run: Annotated[Spread, Field(description="Of attempts that succeeded.")]


class Worker(BaseModel):
    id: str
    host: str
    hostname: str
    pid: int
    state: str
    alive: bool
    pools: Annotated[dict[str, int], Field(description="Pool → slots.")]
    slots: int
    running: int
    rss: int
    cpu: float
    cpu_seconds: float
    version: str
    draining: bool
    paused: Annotated[Held | None, Field(description="The pause of its host.")]
    started_at: Moment
    last_seen_at: Moment
    heartbeat_age_seconds: float
    current: list[Json]


class Workers(Page):
    items: list[Worker]


class Told(Worker):
    command: str


class Schedule(BaseModel):
    """The fields of a schedule (see the guide), and what is known of it."""

    name: str
    job_type: str
    payload: Any
    kind: str
    timezone: str
    enabled: bool
    owner: str
    paused: Json | None
    version: int
    changed_at: Moment
    changed_by: str
    error: str


class ListedSchedule(Schedule):
    next_at: Moment | None
    late_seconds: float | None
    late_why: str
    last: Json | None
    fired: int


class Schedules(Page):
    items: list[ListedSchedule]


class ScheduleWithFirings(ListedSchedule):
    next: list[Moment]
    firings: list[Json]


class ListedRun(BaseModel):
    id: str
    name: str
    state: str
    created_at: Moment
    finished_at: Moment | None
    version: int | None
    payload: Any
    schedule: str | None
    fire_time: Moment | None
    started_by: str | None
    paused: Json | None
    cancelled: Json | None
    deadline: Moment | None
    counts: Annotated[dict[str, int], Field(description="State → nodes.")]


class Runs(Page):
    items: list[ListedRun]


class Node(BaseModel):
    key: str
    state: str
    job: Annotated[str | None, Field(description="The id of its job, once it has one.")]
    type: str
    kind: str
    group: str | None
    released_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    attempts: int
    error: Json | None


class Run(ListedRun):
    result: Json | None
    nodes: list[Node]


class RetriedRun(Run):
    again: list[str]
    waiting: list[str]
    dropped: list[str]


class SignalledRun(Run):
    ended: Annotated[int, Field(description="Nodes that waited for it.")]


class Definition(BaseModel):
    name: str
    version: int | None
    nodes: int | None
    description: str
    changed_by: str
    totals: Json


class Definitions(Page):
    items: list[Definition]


class Problem(BaseModel):
    code: Annotated[str, Field(description="A word for programs: see the reference of errors.")]
    message: str
    fix: Annotated[str, Field(description="What to do about it.")]


class Error(BaseModel):
    error: Problem
