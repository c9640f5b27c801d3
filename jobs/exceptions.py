"""Every error that Mainspring raises on purpose.

Grouped by who must act: the caller (bad request), the state of the world (it is not so any more), the environment.
Each error carries a stable ``code`` for machines and, where there is one, a ``fix``: a sentence that says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class SchedulerError(Exception):
    """Base of all of them. ``str(error)`` is the message; ``code`` and ``fix`` go to CLI, API and pages."""

    code: ClassVar[str] = "scheduler_error"

    def __init__(self, message: str = "", *, fix: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.fix = fix


class UnknownJobType(SchedulerError):
    """No job type of this name is registered in this process."""

    code = "unknown_job_type"


class PayloadInvalid(SchedulerError):
    """The payload does not fit the job type's signature, or an option is wrong."""

    code = "payload_invalid"


class PayloadTooLarge(SchedulerError):
    """The payload is larger than the limit."""

    code = "payload_too_large"


class OptionInvalid(SchedulerError, ValueError):
    """An option of an enqueue or of a command has a value that cannot be used."""

    code = "option_invalid"


class ScheduleInvalid(SchedulerError):
    """The schedule cannot be stored as written."""

    code = "schedule_invalid"


class WorkflowInvalid(SchedulerError):
    """The workflow cannot run as written. ``problems``: all that is wrong (``jobs.core.workflow.Problem``)."""

    code = "workflow_invalid"

    def __init__(self, message: str = "", *, problems: Sequence[Any] = (), fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.problems = tuple(problems)


class TopologyError(SchedulerError):
    """The change of partitions is not possible now."""

    code = "topology_error"


class DuplicateJob(SchedulerError):
    """The id or the unique key belongs to another job. ``job_id`` names it."""

    code = "duplicate_job"

    def __init__(self, message: str = "", *, job_id: str | None = None, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.job_id = job_id


class JobNotFound(SchedulerError):
    """There is no job with this id (any more)."""

    code = "job_not_found"


class ErrorNotFound(SchedulerError):
    """No dead job has this error."""

    code = "error_not_found"


class RunNotFound(SchedulerError):
    """There is no run of a workflow with this id (any more)."""

    code = "run_not_found"


class ResultTooLarge(SchedulerError):
    """The result of a parent was larger than the limit, and only its beginning was kept."""

    code = "result_too_large"


class WrongState(SchedulerError):
    """The job's state does not allow this. ``state`` is the state it was found in."""

    code = "wrong_state"

    def __init__(self, message: str = "", *, state: str | None = None, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.state = state


class LeaseLost(SchedulerError):
    """The lease ended or belongs to another worker: nothing was changed."""

    code = "lease_lost"


class PoolFull(SchedulerError):
    """The pool holds as many waiting jobs as its limit allows."""

    code = "pool_full"


class StoreUnavailable(SchedulerError):
    """The Redis server cannot be reached or does not answer; nothing was changed."""

    code = "store_unavailable"


class StoreNewer(StoreUnavailable):
    """Newer code has written into the store what this one cannot read."""

    code = "store_newer"


class StoreRefused(SchedulerError):
    """The server refused a request in a way that repeating it cannot cure."""

    code = "store_refused"


class OutcomeUnknown(SchedulerError):
    """The server stopped answering after the request was sent: it may or may not have been carried out."""

    code = "outcome_unknown"


class JobTimeout(SchedulerError, TimeoutError):
    """The job ran longer than its time-out, or a wait for it ended first."""

    code = "job_timeout"


class JobCancelled(SchedulerError):
    """The job was cancelled."""

    code = "job_cancelled"
