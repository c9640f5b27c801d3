"""How a chain of middleware crosses between the thread of a slot and the event loop.

Blocking parts of an attempt run in its slot's thread, also those that something async has called: there the database
connections are, and there a handler can be interrupted. While async parts run, the slot waits for their outcome, and
carries out what they ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from jobs.middleware import Call
from jobs.middleware.chain import AsyncCall
from jobs.worker import database

if TYPE_CHECKING:
    from jobs.worker.executor import Execution
    from jobs.worker.slots import Slot

current_slot: ContextVar[Slot] = ContextVar("jobs_slot")
"""The slot whose thread this is, or for which this task runs."""


class LoopBridge:
    """Crosses to ``loop`` and back. See ``jobs.middleware.Bridge``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def to_sync(self, call: AsyncCall) -> Call:
        def blocking(context: Any) -> Any:
            return self._outcome_of(current_slot.get(), call, context)

        return blocking

    def to_async(self, call: Call) -> AsyncCall:
        async def awaiting(context: Any) -> Any:
            inbox = current_slot.get().inbox
            if inbox is None:
                raise RuntimeError("The attempt is over: nothing is left to be called in it.")
            errand = _Errand(call, context, self._loop)
            inbox.put(errand)
            return _unwrapped(await errand.outcome)

        return awaiting

    def _outcome_of(self, slot: Slot, call: AsyncCall, context: Any) -> Any:
        """Runs it on the event loop, in this thread's context variables, and does what it asks for until its end."""
        execution = slot.current
        assert execution is not None, "a slot's chain runs inside an attempt"
        before, task_before = slot.inbox, execution.task
        inbox = slot.inbox = SimpleQueue()
        try:
            self._loop.call_soon_threadsafe(self._begin, execution, _outcome(call, context), inbox)
            while isinstance(message := inbox.get(), _Errand):
                message.run(execution)
        finally:
            slot.inbox, execution.task = before, task_before
        return _unwrapped(message)

    def _begin(self, execution: Execution, outcome: Coroutine[Any, Any, Any], inbox: SimpleQueue[Any]) -> None:
        execution.task = self._loop.create_task(outcome)
        execution.task.add_done_callback(lambda task: inbox.put(_result_of(task)))
        if execution.context.stop_reason is not None:  # asked between the slot's start and now
            execution.task.cancel()


class _Errand:
    """A blocking call that something async waits for."""

    def __init__(self, call: Call, given: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self._call = call
        self._given = given
        self._loop = loop
        self._variables: Variables = copy_context()

    def run(self, execution: Execution) -> None:
        """In the slot's thread. Meanwhile there is no task to be cancelled: who waits must hear how this ends."""
        task, execution.task = execution.task, None
        outcome: Any
        try:
            outcome = self._variables.run(self._call, self._given)
        except BaseException as error:
            outcome = _Raised(error)
        execution.task = task
        self._loop.call_soon_threadsafe(self._answer, outcome)

    def _answer(self, outcome: Any) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _unwrapped(outcome: Any) -> Any:
    if isinstance(outcome, _Raised):
        raise outcome.error
    return outcome


async def _outcome(call: AsyncCall, context: Any) -> Any:
    """Never raises: the slot waits for its answer, and a SystemExit that leaves a task would end the event loop."""
    try:
        await database.close_stale_of_async_handlers()
        try:
            return await call(context)
        finally:
            await database.close_stale_of_async_handlers()
    except BaseException as error:
        return _Raised(error)


def _result_of(task: asyncio.Task[Any]) -> Any:
    return _Raised(asyncio.CancelledError()) if task.cancelled() else task.result()
