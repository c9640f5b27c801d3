"""One attempt, from the leased job to what is reported about it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from time import monotonic
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.context import Context, activate, deactivate
from jobs.core.job import LeasedJob
from jobs.core.payload import dumps
from jobs.engine import Completion
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost
from jobs.registry import JobType, registry
from jobs.worker import database
from jobs.worker.batch import Batch, Marks
from jobs.worker.flusher import Progress
from jobs.worker.interruption import Interruptible, saying
from jobs.worker.isolation import Isolation
from jobs.worker.middleware import build_chain
from jobs.worker.settlement import Drop, Release, Settlement
from jobs.worker.slots import Slot, Work
from jobs.worker.verdict import ResultInvalid, cancelled, failure_of

log = logging.getLogger("jobs.worker")

PREVIEW_BYTES = 1000
"""Of a result that is too large to be kept: how much of it is."""


class Execution(Interruptible):
    """An attempt that runs now, in the hands of those who may have to stop it."""

    __slots__ = ("batch", "context", "lease", "loop", "task", "times_out_at")

    def __init__(
        self, batch: Batch, lease: LeasedJob, context: Context, loop: asyncio.AbstractEventLoop, times_out_at: float
    ) -> None:
        super().__init__()
        self.batch = batch
        self.lease = lease
        self.context = context
        self.loop = loop
        self.times_out_at = times_out_at  # monotonic; inf: never
        self.task: asyncio.Task[Any] | None = None

    def ask_to_stop(self, reason: BaseException) -> None:
        """The handler hears of it when it asks; an async one is cancelled. From any thread, more than once."""
        self.context.stop(reason)
        if self.task is not None:
            self.loop.call_soon_threadsafe(self.task.cancel)

    def stop(self, reason: BaseException) -> bool:
        """Raises it in the handler; an async one is cancelled. False: it has not begun, or is over."""
        self.ask_to_stop(reason)
        return self.task is not None or self.interrupt(saying(reason))


class Executor:
    """``run`` is called by slot threads. Async handlers run on ``loop`` while their slot waits for them.

    ``isolation``: where jobs under suspicion go, None where this process is the place for one.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        marks: Marks,
        report: Callable[[Progress], None],
        isolation: Isolation | None,
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._marks = marks
        self._report = report
        self._isolation = isolation
        self._call = build_chain(settings.middleware, call_handler)

    def run(self, slot: Slot, work: Work, begun: float) -> Settlement:
        """The whole attempt. Raises nothing, whatever the handler does short of ending the process."""
        batch, lease, job_type = work
        marks = self._marks
        if batch.is_over(begun) or marks.is_lost(lease):
            return Drop(lease.id)
        started_at = batch.server_ms(begun)
        if marks.is_cancelled(lease):
            return self._ended_by(cancelled(lease), lease, job_type, started_at)
        if lease.crashes and self._isolation is not None:
            return self._isolation.run(slot, work)
        times_out_at = inf if lease.timeout is None else begun + lease.timeout
        slot.cell.enter(batch.number, lease.id, started_at, times_out_at)
        try:
            settlement = self._attempt(slot, work, started_at, times_out_at)
        except BaseException as error:  # SystemExit of a library among them: it ends the attempt, not the slot
            settlement = self._ended_by(error, lease, job_type, started_at)
        finally:
            slot.cell.leave()
        return Drop(lease.id) if batch.is_over(monotonic()) or marks.is_lost(lease) else settlement

    def _attempt(self, slot: Slot, work: Work, started_at: int, times_out_at: float) -> Settlement:
        batch, lease, job_type = work
        context = Context(
            lease, job_type.decode(lease.payload), _deadline(lease), partial(self._report_progress, lease)
        )
        execution = Execution(batch, lease, context, self._loop, times_out_at)
        context.host = execution
        context.is_lease_over = batch.is_over_now
        slot.current = execution
        active = activate(context)
        database.close_stale()
        try:
            result = self._call(context)
            if job_type.is_async:
                result = self._await(slot, execution, result)
            return self._completed(result, lease, started_at)
        except asyncio.CancelledError as error:
            return self._ended_by(context.stop_reason or error, lease, job_type, started_at)
        finally:
            database.close_stale()
            deactivate(active)
            slot.current = None

    def _completed(self, result: Any, lease: LeasedJob, started_at: int) -> Completion:
        try:
            encoded = None if result is None else self._within_limit(dumps(result))
        except ValueError as error:
            raise ResultInvalid(f"the job did its work, but its result cannot be stored: {error}") from None
        return Completion(lease.id, lease.token, lease.type, started_at, encoded, _ttl_ms(lease))

    def _ended_by(
        self, error: BaseException, lease: LeasedJob, job_type: JobType[..., Any], started_at: int
    ) -> Settlement:
        if isinstance(error, LeaseLost) and self._marks.is_lost(lease):
            return Drop(lease.id)
        charged = self._marks.abandoned.get((lease.id, lease.token))
        if charged is not None and not isinstance(error, JobTimeout | JobCancelled):
            return Release(lease.id, lease.token, lease.type, charged)
        return failure_of(error, lease, job_type, started_at=started_at, error_limit=self._settings.error_limit)

    def _within_limit(self, encoded: bytes) -> bytes:
        """The result, or what says that it was too large: the work is done, so the job has not failed."""
        if len(encoded) <= self._settings.result_limit:
            return encoded
        preview = encoded[:PREVIEW_BYTES].decode(errors="ignore")
        return msgspec.json.encode({"cut": True, "bytes": len(encoded), "preview": preview})

    def _report_progress(self, lease: LeasedJob, current: float, total: float | None, message: str) -> None:
        self._report(Progress(lease, current, total, message))

    # async handlers

    def _await(self, slot: Slot, execution: Execution, awaitable: Awaitable[Any]) -> Any:
        """Runs it on the event loop, in this thread's context variables, and waits for its end."""
        self._loop.call_soon_threadsafe(self._begin, slot, execution, awaitable)
        outcome = slot.replies.get()
        if isinstance(outcome, _Raised):
            raise outcome.error
        return outcome

    def _begin(self, slot: Slot, execution: Execution, awaitable: Awaitable[Any]) -> None:
        execution.task = self._loop.create_task(_outcome(awaitable))
        execution.task.add_done_callback(lambda task: slot.replies.put(_result_of(task)))
        if execution.context.stop_reason is not None:  # asked between the slot's start and now
            execution.task.cancel()


def call_handler(context: Context) -> Any:
    """The innermost call: the registered function with its arguments."""
    job_type = registry.get(context.lease.type)
    arguments = {**context.payload, "ctx": context} if job_type.takes_context else context.payload
    if job_type.is_async:
        return job_type.function(**arguments)
    return context.host.run(job_type.function, arguments)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    """Never raises: a SystemExit that leaves a task would end the event loop."""
    try:
        await database.close_stale_of_async_handlers()
        return await awaitable
    except BaseException as error:
        return _Raised(error)
    finally:
        await database.close_stale_of_async_handlers()


def _result_of(task: asyncio.Task[Any]) -> Any:
    return _Raised(asyncio.CancelledError()) if task.cancelled() else task.result()


def _deadline(lease: LeasedJob) -> float | None:
    """Unix seconds on this machine's clock."""
    return None if lease.timeout is None else time.time() + lease.timeout


def _ttl_ms(lease: LeasedJob) -> int | None:
    """How long the job is kept after its success, where its type or its producer says so."""
    seconds = lease.extras.get("result_ttl")
    return None if seconds is None else int(seconds * 1000)
