"""Waiting for a job at the command line: shows how far it is, and says how it ended."""

from __future__ import annotations

import time
from typing import Any

from jobs import api
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.exceptions import JobTimeout
from jobs.management.columns import job_dict, show_job, state_word, why_parked
from jobs.management.errors import CommandFailed, Exit
from jobs.management.output import Output

LOOK_EVERY_SECONDS = 1.0
"""How often the display moves while a job is waited for. The end itself is seen at once."""


def wait_for(output: Output, id: str, limit: float | None, *, extra: dict[str, Any] | None = None) -> Job:
    """Waits until the job has ended and shows it. Ends the command with 6 when ``limit`` seconds were not enough."""
    until = None if limit is None else time.monotonic() + limit
    try:
        job, in_time = _watch(output, id, until)
    except KeyboardInterrupt:
        # The id, too: of a job that was enqueued by this very command nobody else knows it.
        raise CommandFailed(
            f"Interrupted: job {id} goes on", exit=Exit.INTERRUPTED, code="interrupted", fix=_again(id)
        ) from None
    if output.as_json:
        output.document(job_dict(job) | (extra or {}))
    else:
        show_job(output, job)
    if not in_time:
        raise CommandFailed(
            f"Job {id} is {state_word(job)}: the time to wait is over",
            exit=Exit.PARTLY,
            code="timed_out",
            fix=f"It goes on. {_again(id)}",
        )
    return job


def _again(id: str) -> str:
    return f"Wait again with 'manage.py jobs wait {id}'."


def ended_badly(job: Job) -> None:
    """Ends the command with 1 unless the job succeeded."""
    if job.state is not JobState.SUCCEEDED:
        raise CommandFailed(
            f"Job {job.id} is {job.state.value}",
            exit=Exit.FAILED,
            code=f"job_{job.state.value}",
            fix=f"See 'manage.py jobs show {job.id}'." if job.state is JobState.DEAD else "",
        )


def _watch(output: Output, id: str, until: float | None) -> tuple[Job, bool]:
    """The job when it ended, or as it is when the time is over; and which of the two."""
    with output.progress(f"wait for {id}") as step:
        while True:
            left = LOOK_EVERY_SECONDS if until is None else min(LOOK_EVERY_SECONDS, until - time.monotonic())
            try:
                return api.wait(id, timeout=max(0.0, left)), True
            except JobTimeout:
                job = api.get_job(id)
            if until is not None and time.monotonic() >= until:
                return job, job.is_terminal
            step(0, note=": ".join(filter(None, (state_word(job), why_parked(job)))))
