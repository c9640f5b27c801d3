"""What is refused, in words, and what helps."""

from __future__ import annotations

from jobs.core.job import JobSpec
from jobs.exceptions import DuplicateJob, JobNotFound, OutcomeUnknown, PoolFull, SchedulerError, WrongState


def id_taken(job_id: str) -> DuplicateJob:
    return DuplicateJob(
        f"A job with the id {job_id!r} exists already.",
        job_id=job_id,
        fix="It was enqueued before: look at it with get_job, or choose another id.",
    )


def key_taken(holder: str, key: str) -> DuplicateJob:
    return DuplicateJob(
        f"Job {holder} already holds the unique key {key!r}.",
        job_id=holder,
        fix="Wait for that job, cancel it, or use another key.",
    )


def not_found(job_id: str) -> JobNotFound:
    return JobNotFound(f"There is no job {job_id!r}.", fix="Ended jobs are forgotten after their retention.")


def wrong_state(job_id: str, state: str | None) -> WrongState:
    return WrongState(f"Job {job_id} is {state}; that does not allow this.", state=state)


def pool_full(spec: JobSpec, count: int, full: PoolFull, limit: int | None) -> PoolFull:
    """``count`` new jobs found no room. ``full``: as the server put it; ``limit``: of the pool."""
    asked = "a new job" if count == 1 else f"{count:,} new jobs"
    return PoolFull(
        f"The pool {spec.pool!r} has no room for {asked}: {str(full).rstrip('.')}, and at most {limit} may.",
        fix="Try again when some have run, or raise the limit: `manage.py pools limit`.",
    )


def broken_off(created: int, asked: int, error: SchedulerError) -> OutcomeUnknown:
    """Of an enqueue of thousands some are there, when what is left meets an error; what was on its way may be too."""
    return OutcomeUnknown(
        f"At least {created:,} of {asked:,} jobs were created, and then: {error}",
        fix="Look before you repeat it, or repeat it with the same ids.",
    )


def problem(job_id: str, answer: str) -> SchedulerError | None:
    """What a script over many jobs answered for one of them."""
    if answer == "ok":
        return None
    if answer == "later":
        return WrongState(f"Job {job_id} has lived on and ended again since it was chosen.", state=None)
    if answer == "moved":
        fix = "Act on the job that goes on for it; it is named as `moved_to`."
        return WrongState(f"Job {job_id} was moved to another pool.", state="cancelled", fix=fix)
    if answer == "moving":
        fix = "Try again in a minute: a worker host finishes its move, and then it can go."
        return WrongState(f"Job {job_id} is half moved to another pool, and would be lost.", state="cancelled", fix=fix)
    return not_found(job_id) if answer == "JOB_NOT_FOUND" else wrong_state(job_id, answer)
