"""What becomes of a job whose attempt ended with an error: the same wherever that is noticed."""

from __future__ import annotations

import logging
from typing import Any

from jobs.core.job import LeasedJob
from jobs.core.retry import decide
from jobs.engine import Failure
from jobs.exceptions import JobCancelled, JobTimeout, PayloadInvalid
from jobs.registry import JobType
from jobs.worker.failure import describe_error

log = logging.getLogger("jobs.worker")


class ResultInvalid(TypeError):
    """The handler did its work and returned something that cannot be stored."""


def failure_of(
    error: BaseException, lease: LeasedJob, job_type: JobType[..., Any], *, started_at: int, error_limit: int
) -> Failure:
    """``started_at``: server ms. ``error_limit``: bytes of its traceback that are kept."""
    budget: dict[str, Any] = {"errors": lease.errors, "max_retries": lease.max_retries, "backoff": lease.backoff}
    try:
        # Errors of the payload and of the result would end the same way each time.
        dead_on = (*job_type.dead_on, PayloadInvalid, ResultInvalid)
        decision = decide(error, **budget, retry_on=job_type.retry_on, dead_on=dead_on)
    except BaseException:  # whether an error is one of a class may be for that class's own code to say
        log.exception("job %s has failed; whether retry_on or dead_on means its error cannot be found out", lease.id)
        decision = decide(error, **budget)
    described = describe_error(error, error_limit) if decision.outcome in ("retry", "dead") else None
    return Failure(
        lease.id, lease.token, lease.type, started_at, decision.outcome, decision.delay_ms, lease.priority, described
    )


def timed_out(lease: LeasedJob) -> JobTimeout:
    """What is raised in a handler that is over time."""
    return JobTimeout(f"Job {lease.id} ran longer than its time-out of {lease.timeout:g} s.")


def cancelled(lease: LeasedJob) -> JobCancelled:
    """What is raised in a handler whose job was cancelled."""
    return JobCancelled(f"Job {lease.id} was cancelled.")


def did_not_stop(lease: LeasedJob, *, was_cancelled: bool) -> JobCancelled | JobTimeout:
    """The error of an attempt whose process had to be ended."""
    if was_cancelled:
        return cancelled(lease)
    return JobTimeout(
        f"Job {lease.id} ran longer than its time-out of {lease.timeout:g} s and could not be interrupted: "
        "its worker was ended."
    )
