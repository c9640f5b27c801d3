"""What the tests of a project need: look at what was enqueued, run it on the spot, or drain the real store.

``capture`` and ``inline`` stand in for the engine: no server, no worker, and the handlers run in the test's own thread
and transaction. They know nothing of unique keys, ids, pauses or other workers; ``drain`` runs the real thing.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings as django_settings
from django.test import override_settings

from jobs.api.producer import Destination, delivered_to
from jobs.conf import get_settings
from jobs.core.context import Context
from jobs.core.job import Enqueued, Job, JobSpec, LeasedJob, Route, moment
from jobs.core.parents import Ended
from jobs.core.payload import dumps
from jobs.core.retry import Decision, decide
from jobs.core.states import TERMINAL, JobState
from jobs.engine import Completion, Failure, JobFilter, NewLines, TypeOverrides, get_engine, new_token
from jobs.exceptions import PayloadInvalid
from jobs.middleware import AsgirefBridge, chain
from jobs.registry import JobType, registry
from jobs.runtime import node_jobs
from jobs.runtime.growing import grow
from jobs.runtime.relaying import Relay
from jobs.store.connection import Store
from jobs.store.log_lines import encode_line
from jobs.worker.executor import await_handler, call_handler
from jobs.worker.failure import describe_error
from jobs.worker.verdict import ResultInvalid

__all__ = ["CapturedJob", "CapturedJobs", "capture", "drain", "inline", "isolated"]

DRAIN_LEASE_MS = 3_600_000
"""Nobody renews the leases of a drain: they last longer than any test."""

STATE_AFTER = {
    "retry": JobState.RETRY_WAIT,
    "snooze": JobState.SCHEDULED,
    "dead": JobState.DEAD,
    "cancelled": JobState.CANCELLED,
}

MOST_SNOOZES = 100
"""After so many a captured job is taken for one that never wakes up."""


# --- Standing in for the engine --------------------------------------------------------------------------------------


class CapturedJob(msgspec.Struct, kw_only=True):
    """A job that was enqueued inside ``capture()`` or ``inline()``, and what became of it there."""

    id: str
    spec: JobSpec
    payload: dict[str, Any]
    """As stored: JSON values."""
    state: str
    destination: Destination
    """Where it was sent; what its handler enqueues goes there too."""
    attempts: int = 0
    snoozed: int = 0
    result: Any = None
    """What the handler returned."""
    error: BaseException | None = None
    """What its last attempt raised."""

    @property
    def type(self) -> str:
        return self.spec.type

    def run(self) -> CapturedJob:
        """Runs it to its end, here and now: retries follow at once, whatever their backoff, and a snooze lasts no time.

        Errors that end the job stay in ``error``; ``state`` is then ``dead``.
        """
        with delivered_to(self.destination):
            while JobState(self.state) not in TERMINAL:
                self._attempt()
        return self

    def _attempt(self) -> None:
        job_type = registry.get(self.type)
        self.attempts += 1
        attempts = self.attempts - self.snoozed
        lease = _lease_of(self.id, self.spec, dumps(self.payload), attempt=attempts)
        self.error = None
        try:
            self.result, _ = _run_attempt(lease, _Here())
            self.state = JobState.SUCCEEDED
        except Exception as error:
            self.error = error
            decision = _decide(error, job_type, attempts - 1, self.spec.max_retries, self.spec.backoff)
            self.state = STATE_AFTER[decision.outcome]
            if decision.outcome == "snooze":
                self.snoozed += 1
                if self.snoozed > MOST_SNOOZES:
                    raise AssertionError(
                        f"{self.type} snoozed {self.snoozed} times; outside a test it would go on like that"
                    ) from error


class CapturedJobs(list[CapturedJob]):
    """The jobs enqueued in a block, in order."""

    def of(self, type_name: str) -> list[CapturedJob]:
        """Those of one type."""
        return [job for job in self if job.type == type_name]

    def run(self) -> None:
        """Runs all that have not ended, and what they enqueue meanwhile. An error that ends a job is raised."""
        for job in self:  # grows while it is walked
            if job.run().state == JobState.DEAD and job.error is not None:
                raise job.error


class _Capture:
    """A destination that keeps what it is sent."""

    def __init__(self, jobs: CapturedJobs, on_arrival: Callable[[CapturedJob], object]) -> None:
        self._jobs = jobs
        self._on_arrival = on_arrival
        self._numbers = itertools.count(1)

    def overrides(self, type_name: str) -> TypeOverrides:
        return TypeOverrides()

    def new_ids(self, pool: str, count: int) -> list[str]:
        return [f"captured-{next(self._numbers)}" for _ in range(count)]

    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], ids: Sequence[str] | None) -> list[Enqueued]:
        ids = ids or ([spec.id] if spec.id else self.new_ids(spec.pool, len(payloads)))
        now = datetime.now(UTC)
        run_at = moment(spec.run_at_ms or now.timestamp() * 1000 + spec.delay_ms)
        made = []
        for id, payload in zip(ids, payloads, strict=True):
            state = JobState.SCHEDULED if run_at > now else JobState.READY
            job = CapturedJob(id=id, spec=spec, payload=msgspec.json.decode(payload), state=state, destination=self)
            self._jobs.append(job)
            self._on_arrival(job)
            made.append(Enqueued(id=id, type=spec.type, pool=spec.pool, state=job.state, run_at=run_at))
        return made


@contextmanager
def capture() -> Iterator[CapturedJobs]:
    """Keeps what is enqueued in the block and runs nothing. Payloads and options are checked as always.

    ``with capture() as jobs: …`` and then ``jobs[0].payload``, ``jobs.of("email.send")``, ``jobs.run()``.
    """
    jobs = CapturedJobs()
    with delivered_to(_Capture(jobs, lambda job: None)):
        yield jobs


@contextmanager
def inline(*, raise_errors: bool = True) -> Iterator[CapturedJobs]:
    """Runs each job where it is enqueued, before ``enqueue`` returns; delays and backoffs take no time.

    An error that ends a job is raised by its ``enqueue``; with ``raise_errors=False`` it is only in ``job.error``.
    """
    jobs = CapturedJobs()

    def run(job: CapturedJob) -> None:
        job.run()
        if raise_errors and job.state == JobState.DEAD and job.error is not None:
            raise job.error

    with delivered_to(_Capture(jobs, run)):
        yield jobs


# --- The real store --------------------------------------------------------------------------------------------------


def drain(*, pools: Sequence[str] | None = None, skip_waits: bool = False, limit: int = 10_000) -> list[Job]:
    """Runs the jobs of the store in this thread, one by one, until none is ready; answers them as they are then.
    Runs of workflows go on with them.

    They run in the test's own transaction and see its rows. With ``skip_waits`` scheduled jobs and retries run at once
    as well. ``limit``: after so many attempts it is an AssertionError, since something enqueues itself for ever.
    """
    engine = get_engine()
    seen: dict[str, None] = {}
    while True:
        if skip_waits:
            for id in _waiting(pools):
                engine.jobs.run_now(id)
        leases = _lease_one(pools)
        if not leases:
            found = engine.jobs.get_many(seen)
            return [job for job in found if job is not None]
        for lease in leases:
            seen[lease.id] = None
            _settle(lease)
            if "workflow_run" in lease.extras:
                Relay(engine).tell(lease.route, [lease.id])
            limit -= 1
            if limit < 0:
                raise AssertionError(
                    "drain() ran its limit of attempts and there is still work; raise limit= if it may"
                )


def _lease_one(pools: Sequence[str] | None) -> list[LeasedJob]:
    """One job at a time: what it cancels, pauses or overtakes must not be in our hands already."""
    engine = get_engine()
    for route in engine.topology.partitions():
        if pools is None or route.pool in pools:
            reply = engine.leases.lease(route, worker="drain", token=new_token(), limit=1, lease_ms=DRAIN_LEASE_MS)
            if reply.jobs:
                return reply.jobs
    return []


def _waiting(pools: Sequence[str] | None) -> Iterator[str]:
    """Ids of the jobs that wait for a time, all of them: what runs them moves them out of these states."""
    waits = (JobState.SCHEDULED, JobState.RETRY_WAIT)
    while found := [
        job.id
        for job in get_engine().jobs.page(JobFilter(states=waits), limit=1000).items
        if pools is None or job.pool in pools
    ]:
        yield from found


def _settle(lease: LeasedJob) -> None:
    engine, started_at = get_engine(), lease.leased_at
    if lease.type not in registry or lease.type in engine.types.disabled():
        engine.leases.park(lease.route, [(lease.id, lease.token, lease.type)])
        return
    job_type = registry.get(lease.type)
    engine.leases.start(lease.route, [(lease.id, lease.token, started_at)])
    try:
        _, encoded = _run_attempt(lease, _Drain(lease))
    except Exception as error:
        decision = _decide(error, job_type, lease.errors, lease.max_retries, lease.backoff)
        described = describe_error(error, get_settings().error_limit)
        failure = Failure(
            lease.id,
            lease.token,
            lease.type,
            started_at,
            decision.outcome,
            decision.delay_ms,
            lease.priority,
            described if decision.outcome in ("retry", "dead") else None,
        )
        engine.leases.fail(lease.route, [failure])
    else:
        engine.leases.complete(lease.route, [Completion(lease.id, lease.token, lease.type, started_at, encoded, None)])


@contextmanager
def isolated() -> Iterator[None]:
    """Gives the block a namespace of its own in the store and removes it afterwards: tests can run side by side."""
    namespace = f"test-{uuid.uuid4().hex}"
    with override_settings(SCHEDULER={**getattr(django_settings, "SCHEDULER", {}), "NAMESPACE": namespace}):
        try:
            yield
        finally:
            _forget(get_engine().store, namespace)


def _forget(store: Store, namespace: str) -> None:
    def send(client: Any) -> None:
        for key in client.scan_iter(match=f"{namespace}:*", count=1000):
            client.unlink(key)

    store.call(send)


# --- One attempt -----------------------------------------------------------------------------------------------------


def _run_attempt(lease: LeasedJob, host: _Here) -> tuple[Any, bytes]:
    """Runs the handler through the worker's middleware, in this thread. Answers its result, as it is and as JSON."""
    job_type = registry.get(lease.type)
    context = Context(lease, job_type.decode(lease.payload), host=host)
    innermost = await_handler if job_type.is_async else call_handler
    with context.active():
        result = chain(get_settings().middleware, innermost, AsgirefBridge())(context)
    try:
        return result, dumps(result)
    except ValueError as error:
        raise ResultInvalid(f"the job did its work, but its result cannot be stored: {error}") from None


class _Here:
    """Where the attempts of captured jobs run. Nobody hears what they say."""

    def progress(self, current: float, total: float | None, message: str) -> None: ...

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None: ...

    def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return function(**arguments)

    def read_parents(self) -> dict[str, Ended]:
        return {}

    def add_nodes(self, nodes: list[dict[str, Any]]) -> list[str]:
        raise LookupError("Nothing can be added to a run here: no run is behind a captured job.")


class _Drain(_Here):
    """Where the attempts of a drain run: what they say goes to the store at once."""

    def __init__(self, lease: LeasedJob) -> None:
        self._lease = lease

    def read_parents(self) -> dict[str, Ended]:
        return node_jobs.parents_of(get_engine(), self._lease)

    def add_nodes(self, nodes: list[dict[str, Any]]) -> list[str]:
        extras = self._lease.extras
        return grow(Relay(get_engine()), extras["workflow_run"], extras["node"], nodes)

    def progress(self, current: float, total: float | None, message: str) -> None:
        get_engine().leases.progress(self._lease, current, total, message)

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None:
        engine, lease = get_engine(), self._lease
        line = encode_line(engine.jobs.server_now_ms(), level, message, fields)
        engine.logs.append(lease.route, [NewLines(lease.id, lease.token, [line])])


def _decide(error: Exception, job_type: JobType[..., Any], errors: int, max_retries: int, backoff: Any) -> Decision:
    """As a worker decides: what would end the same way each time is not tried again."""
    return decide(
        error,
        errors=errors,
        max_retries=max_retries,
        backoff=backoff,
        retry_on=job_type.retry_on,
        dead_on=(*job_type.dead_on, PayloadInvalid, ResultInvalid),
    )


def _lease_of(id: str, spec: JobSpec, payload: bytes, *, attempt: int) -> LeasedJob:
    return LeasedJob(
        id=id,
        route=Route(spec.pool, 0, 0),
        token="",
        type=spec.type,
        payload=payload,
        attempt=attempt,
        errors=attempt - 1,
        crashes=0,
        fencing_token=attempt,
        priority=spec.priority,
        max_retries=spec.max_retries,
        max_crashes=spec.max_crashes,
        timeout=spec.timeout,
        backoff=spec.backoff,
        extras={"tags": spec.tags, "meta": spec.meta, "schedule": spec.schedule, "fire_time_ms": spec.fire_time_ms},
        leased_at=0,
    )
