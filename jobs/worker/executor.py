"""One attempt, from the leased job to what is reported about it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.context import Context, activate, deactivate
from jobs.core.job import LeasedJob
from jobs.core.parents import cut_result
from jobs.core.payload import dumps
from jobs.core.workflow import Ended
from jobs.engine import Completion, Failure
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost
from jobs.middleware import chain
from jobs.registry import JobType, registry
from jobs.runtime.announcing import announce
from jobs.runtime.process import end_fork
from jobs.signals import job_started
from jobs.worker import database
from jobs.worker.batch import Batch, Marks
from jobs.worker.bridge import LoopBridge
from jobs.worker.herald import Herald, is_anybody_listening
from jobs.worker.interruption import Interruptible, saying
from jobs.worker.isolation import Isolation
from jobs.worker.messenger import Messenger
from jobs.worker.reports import Reports
from jobs.worker.settlement import Drop, Release, Settlement
from jobs.worker.slots import Slot
from jobs.worker.verdict import ResultInvalid, cancelled, failure_of
from jobs.worker.work import Work

log = logging.getLogger("jobs.worker")

PREVIEW_BYTES = 1000
"""Of a result that is too large to be kept: how much of it is."""


class Execution(Interruptible):
    """An attempt that runs now: what its context speaks to, in the hands of those who may have to stop it.

    ``task``: what runs on the event loop for it, None while its slot's thread does the work.
    """

    __slots__ = ("_messenger", "_reports", "batch", "context", "lease", "loop", "task", "times_out_at")

    context: Context

    def __init__(
        self,
        batch: Batch,
        lease: LeasedJob,
        loop: asyncio.AbstractEventLoop,
        reports: Reports,
        times_out_at: float,
        messenger: Messenger,
    ) -> None:
        super().__init__()
        self.batch = batch
        self.lease = lease
        self.loop = loop
        self.times_out_at = times_out_at  # monotonic; inf: never
        self.task: asyncio.Task[Any] | None = None
        self._reports = reports
        self._messenger = messenger

    def progress(self, current: float, total: float | None, message: str) -> None:
        self._reports.progress(self.lease, current, total, message)

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None:
        self._reports.line(self.lease, level, message, fields, at_ms=self.batch.server_ms(monotonic()))

    def read_parents(self) -> dict[str, Ended]:
        return self._messenger.read_parents(self.lease)

    def add_nodes(self, nodes: list[dict[str, Any]]) -> list[str]:
        return self._messenger.add_nodes(self.lease, nodes)

    def ask_to_stop(self, reason: BaseException) -> None:
        """The handler hears of it when it asks; an async one is cancelled. From any thread, more than once."""
        self.context.stop(reason)
        task = self.task  # read once: it is over the moment that the slot takes it away
        if task is not None:
            self.loop.call_soon_threadsafe(task.cancel)

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
        reports: Reports,
        herald: Herald,
        messenger: Messenger,
        isolation: Isolation | None,
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._marks = marks
        self._reports = reports
        self._herald = herald
        self._messenger = messenger
        self._isolation = isolation
        bridge = LoopBridge(loop)
        self._call = chain(settings.middleware, call_handler, bridge)
        self._call_async = chain(settings.middleware, await_handler, bridge)

    def run(self, slot: Slot, work: Work, begun: float) -> Settlement:
        """The whole attempt. Raises nothing, whatever the handler does short of ending the process."""
        batch, lease, job_type = work.batch, work.lease, work.job_type
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
        execution = Execution(batch, lease, self._loop, self._reports, times_out_at, self._messenger)
        end: Settlement
        try:
            value = self._attempt(slot, execution, job_type)
            end = self._completed(value, lease, started_at)
        except BaseException as error:  # SystemExit of a library among them: it ends the attempt, not the slot
            value = error
            end = self._ended_by(error, lease, job_type, started_at)
        slot.cell.leave()  # not where that has failed, too: the slot dies of it, and the job shall be charged
        if batch.is_over(monotonic()) or marks.is_lost(lease):
            return Drop(lease.id)
        if is_anybody_listening() and isinstance(end, Completion | Failure):
            self._herald.expect(end, job_type, getattr(execution, "context", None), value)
        if "workflow_run" in lease.extras:
            self._messenger.expect(lease)
        return end

    def _attempt(self, slot: Slot, execution: Execution, job_type: JobType[..., Any]) -> Any:
        """What the handler returns, or raises."""
        lease = execution.lease
        deadline = None if lease.timeout is None else time.time() + lease.timeout  # on this machine's clock
        context = Context(lease, job_type.decode(lease.payload), deadline, execution)
        context.is_lease_over = execution.batch.is_over_now
        execution.context = context
        slot.current = execution
        active = activate(context)
        try:
            database.close_stale()
            if job_started.receivers:
                announce(job_started, job_type, job_id=lease.id, context=context)
            if not job_type.is_async:
                return self._call(context)
            if job_type.takes_context and lease.extras.get("workflow_run"):
                _ = context.parents  # here, where it may take its time: on the loop others would wait
            return self._call_async(context)
        except asyncio.CancelledError:
            if context.stop_reason is not None:
                raise context.stop_reason from None
            raise
        finally:
            deactivate(active)
            context.host = None  # it is over; and two that hold each other would be left to the garbage collector
            slot.current = None
            (database.drop_all if execution.was_interrupted else database.close_stale)()

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
        return msgspec.json.encode(cut_result(len(encoded), preview))


def call_handler(context: Context) -> Any:
    """The innermost call: the registered function with its arguments."""
    function, arguments = _handler(context)
    assert context.host is not None
    worker = os.getpid()
    try:
        return context.host.run(function, arguments)
    finally:
        if os.getpid() != worker:  # here, before it could close our connections, lease jobs, or stay for ever
            end_fork(sys.exception())


async def await_handler(context: Context) -> Any:
    """The same for an async one."""
    function, arguments = _handler(context)
    worker = os.getpid()
    try:
        return await function(**arguments)
    finally:
        if os.getpid() != worker:
            end_fork(sys.exception())


def _handler(context: Context) -> tuple[Callable[..., Any], dict[str, Any]]:
    job_type = registry.get(context.lease.type)
    return job_type.function, {**context.payload, "ctx": context} if job_type.takes_context else context.payload


def _ttl_ms(lease: LeasedJob) -> int | None:
    """How long the job is kept after its success, where its type or its producer says so."""
    seconds = lease.extras.get("result_ttl")
    return None if seconds is None else int(seconds * 1000)
