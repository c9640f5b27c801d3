"""What a handler can see of its own job, and say about it, while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from jobs.core.job import LeasedJob, moment_or_none
from jobs.core.job_log import JobLog
from jobs.core.parents import Ended, Parents
from jobs.core.run_handle import WorkflowRun
from jobs.core.wording import shown
from jobs.exceptions import LeaseLost, OptionInvalid


class Host(Protocol):
    """Where an attempt runs: takes what it says of itself. Must not block, since async handlers call it too."""

    def progress(self, current: float, total: float | None, message: str) -> None:
        """How far it is."""

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None:
        """A line of its log."""

    def add_nodes(self, nodes: list[dict[str, Any]]) -> list[str]:
        """Adds nodes to the run that this job is a node of; their keys. Asks the store."""

    def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Calls a handler that is not async."""

    def read_parents(self) -> dict[str, Ended]:
        """How the parents of this node of a workflow have ended. Asks the store."""


_logger = logging.getLogger("jobs.job")

MOST_PROGRESS = 10**18
"""More than this nobody counts, and what keeps it could not."""


class Context(msgspec.Struct, eq=False):
    """The running job, as its handler sees it. Ask for it with a parameter called ``ctx``.

    Cheap to make, since one is made for each attempt: it reads from the lease and works out the rest when asked.
    """

    lease: LeasedJob
    payload: dict[str, Any]
    """The handler's keyword arguments, converted to the types of its signature."""
    deadline_at: float | None = None
    """Unix seconds on this machine's clock at which the attempt times out."""
    host: Host | None = None
    stop_reason: BaseException | None = None
    is_lease_over: Callable[[], bool] | None = None
    """Asks the clock whether the lease can still be ours."""
    _parents: Parents | None = None

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def type(self) -> str:
        return self.lease.type

    @property
    def pool(self) -> str:
        return self.lease.route.pool

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. Attempts whose worker died count."""
        return self.lease.attempt

    @property
    def max_retries(self) -> int:
        return self.lease.max_retries

    @property
    def fencing_token(self) -> int:
        """Grows with every lease of this job. Hand it to systems that must refuse a late writer."""
        return self.lease.fencing_token

    @property
    def deadline(self) -> datetime | None:
        """When this attempt times out (UTC), or None without a time-out."""
        return None if self.deadline_at is None else datetime.fromtimestamp(self.deadline_at, UTC)

    @property
    def tags(self) -> list[str]:
        return list(self.lease.extras.get("tags") or ())

    @property
    def meta(self) -> dict[str, str]:
        return dict(self.lease.extras.get("meta") or {})

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that made this job."""
        return self.lease.extras.get("schedule")

    @property
    def fire_time(self) -> datetime | None:
        """The nominal time of the firing: use it instead of "now" in recurring work."""
        return moment_or_none(self.lease.extras.get("fire_time_ms") or 0)

    @property
    def parents(self) -> Parents:
        """Results of the workflow parents by node key, read when they are first asked for. Empty outside a workflow.

        Only parents that succeeded have one; ``parents.ended`` says how each of them ended.
        """
        if self._parents is None:
            is_node = self.workflow is not None and self.host is not None
            self._parents = Parents(self.host.read_parents() if is_node and self.host is not None else {})
        return self._parents

    @property
    def workflow(self) -> WorkflowRun | None:
        """The workflow run that this job is a node of."""
        run_id, node = self.lease.extras.get("workflow_run"), self.lease.extras.get("node")
        return WorkflowRun(run_id, node or "", self.host) if run_id is not None else None

    @property
    def log(self) -> JobLog:
        """A logger (``jobs.job``) whose lines are also kept with the job, by attempt; see ``JobLog``."""
        facts = {"job_id": self.id, "job_type": self.type, "pool": self.pool, "attempt": self.attempt}
        return JobLog(_logger, facts, self.host.keep_line if self.host is not None else None)

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """Says how far the work is. Shown live; calls in quick succession may be merged into the last one."""
        current = _amount("current", current)
        total = None if total is None else _amount("total", total)
        if self.host is not None:
            self.host.progress(current, total, str(message))

    def is_cancelled(self) -> bool:
        """True once this attempt should stop: cancelled, timed out, or its lease lost. Costs next to nothing to ask.

        Also true from the first instruction on in a process that was frozen for longer than its lease.
        """
        return self.stop_reason is not None or (self.is_lease_over is not None and self.is_lease_over())

    def raise_if_cancelled(self) -> None:
        """Raises ``JobCancelled``, ``JobTimeout`` or ``LeaseLost`` if this attempt should stop."""
        if self.stop_reason is not None:
            raise self.stop_reason
        if self.is_cancelled():
            raise LeaseLost(f"The lease of job {self.id} could not be renewed in time.")

    def stop(self, reason: BaseException) -> None:
        """For the worker: asks the handler to stop. The first reason stays."""
        if self.stop_reason is None:
            self.stop_reason = reason

    @contextmanager
    def active(self) -> Iterator[Context]:
        """Makes this the ``current_context()`` of the block."""
        token = activate(self)
        try:
            yield self
        finally:
            deactivate(token)


def _amount(name: str, number: object) -> float:
    """The number as one of Python's own: those of NumPy look alike, and what carries them on does not know them."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MOST_PROGRESS:
        raise OptionInvalid(
            f"progress {name}: expected a number of 0 or more, got {shown(number)}",
            fix="Write ctx.progress(3, 12) or ctx.progress(0.25, 1.0).",
        )
    return int(number) if isinstance(number, int) else float(number)


_current: ContextVar[Context] = ContextVar("jobs_context")

activate: Callable[[Context], Token[Context]] = _current.set
"""Makes a context the current one of this thread or asyncio task. Hand the answer to ``deactivate``."""
deactivate: Callable[[Token[Context]], None] = _current.reset


def current_context() -> Context:
    """The context of the job that runs here: this thread or asyncio task, and what it awaits or copies.

    Raises LookupError outside a handler.
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError("No job is running here: current_context() works only inside a handler.") from None
