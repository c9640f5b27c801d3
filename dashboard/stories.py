"""A job in sentences: why it waits, how far it is, what happened to it.

Pure functions over what was read; nothing here asks the engine.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.formats import age, duration, moment, plural, sentence, shortened
from dashboard.overall import Overall
from dashboard.standing import paused_words
from jobs.core.job import Job
from jobs.core.states import JobState

TOLD_ANYWAY = ("due_at", "retry_at")
"""Reasons of ``api.explain`` that the story of a job tells already, with its error beside them."""


def reason(job: Job, overall: Overall) -> str:
    """One line: why the job is where it is, and what would change that."""
    now = overall.now
    match job.state:
        case JobState.SCHEDULED:
            return f"{_due(job, now).capitalize()}."
        case JobState.BLOCKED:
            return "Waits for the workflow nodes before it."
        case JobState.RETRY_WAIT:
            return f"Attempt {job.attempt + 1} is {_due(job, now)}. {error_line(job)}"
        case JobState.READY:
            return _why_ready(job, overall)
        case JobState.LEASED:
            return _why_running(job, overall)
        case JobState.DEAD:
            return error_line(job) or "No error was recorded."
        case _:
            return ""


def beside_its_time(job: Job, overall: Overall) -> str:
    """The same in a row, whose own column says when, and lets it tick."""
    match job.state:
        case JobState.SCHEDULED:
            return ""
        case JobState.RETRY_WAIT:
            return f"Attempt {job.attempt + 1} is next. {error_line(job)}"
    return reason(job, overall)


def _why_ready(job: Job, overall: Overall) -> str:
    """In the order of ``jobs.explain``, from what the page knows already; the job's own page asks ``explain``."""
    pool = next((pool for pool in overall.pools if pool["name"] == job.pool), None)
    if overall.paused:
        return f"Everything is p{paused_words(overall.paused)[1:]}"
    if pool and pool["paused"]:
        return f"Pool {job.pool} is p{paused_words(pool['paused'])[1:]}"
    if pool and not pool["workers"]:
        return f"No worker serves pool {job.pool}."
    if pool and pool.get("hosts_paused"):
        return f"The worker hosts of pool {job.pool} are paused."
    if job.parked:
        return f"Parked: no live worker may run the type {job.type}. It is unknown to them, paused, or disabled."
    if pool and pool["max_running"] is not None and pool["leased"] >= pool["max_running"]:
        return f"Pool {job.pool} runs as many as it may at once: {pool['max_running']}."
    if job.throttled:
        return f"A limit of the type {job.type} holds it back: its key has its share."
    if job.attempt:
        return "Waits for a free slot, once more."
    return "Waits for a free slot."


def _due(job: Job, now: datetime) -> str:
    """``due in 5 min``: when it starts hangs on more than its time."""
    left = (job.run_at - now).total_seconds()
    return f"due in {age(left)}" if left >= 0 else f"due since {age(-left)}, and stands in line when a worker looks"


def _why_running(job: Job, overall: Overall) -> str:
    now = overall.now
    if job.cancel_requested:
        return "Cancelling: the handler has been asked to stop."
    if job.lease_expires_at and job.lease_expires_at < now:
        when = "is about to be taken back" if overall.workers else "is taken back when a worker is alive again"
        return f"No sign of life from its worker; it {when}."
    if job.progress:
        return progress_of(job, now)
    return "Running." if job.started_at else "Handed to a worker, not started yet."


def progress_words(progress: dict[str, Any]) -> str:
    """``3 of 12: message``"""
    current, total, message = progress.get("current"), progress.get("total"), str(progress.get("message") or "")
    done = f"{current} of {total}" if total is not None else f"{current}" if current is not None else ""
    return f"{done}: {message}" if done and message else done or message


def progress_of(job: Job, now: datetime) -> str:
    """The same of a job; one whose handler has said nothing for long is called stalled."""
    words = progress_words(job.progress or {})
    silence = job.silence(now)
    return f"{words}. Stalled: nothing new for {age(silence.total_seconds())}." if silence else words


def error_line(job: Job, limit: int = 200) -> str:
    """``ValueError: the message`` on one line; empty when the job has no error."""
    if not job.error:
        return ""
    kind, message = str(job.error.get("type") or "Error"), str(job.error.get("message") or "")
    return shortened(f"{kind}: {message}" if message else kind, limit)


def what_happened(job: Job, overall: Overall) -> tuple[str, str]:
    """The story of the job as (finding, rest): the first sentence stands out."""
    now = overall.now
    starts = "attempt" if job.attempt == 1 else "attempts"
    match job.state:
        case JobState.SUCCEEDED:
            took = _span(job.started_at, job.finished_at)
            return f"Succeeded{f' in {took}' if took else ''}.", _tries(job)
        case JobState.DEAD:
            span = _span(_first_start(job), job.finished_at)
            crashed = f" {plural(job.crashes, 'of them crashed', 'of them crashed')} its worker." if job.crashes else ""
            tried = (
                f"Gave up after {job.attempt} {starts}{f' in {span}' if span else ''}."
                if job.attempt
                else "Died before its first attempt."
            )
            return (
                tried,
                f"{crashed} {sentence(error_line(job))} It will not run again unless somebody resubmits it.".strip(),
            )
        case JobState.CANCELLED:
            return (
                "Cancelled.",
                f"Ended {age((now - job.finished_at).total_seconds())} ago; it can be resubmitted."
                if job.finished_at
                else "",
            )
        case JobState.SKIPPED:
            return "Skipped.", "Its condition in the workflow can no longer hold."
        case JobState.LEASED if job.cancel_requested:
            return "Cancelling.", "The handler has been asked to stop; the job ends as cancelled whatever it returns."
        case JobState.LEASED if job.started_at:
            limit = f" It may take {duration(job.timeout)} at most." if job.timeout else ""
            return (
                f"Running for {age((now - job.started_at).total_seconds())}.",
                f"Attempt {job.attempt} on {job.worker}.{limit}",
            )
        case JobState.RETRY_WAIT:
            return (
                f"Attempt {job.attempt} failed.",
                f"{sentence(error_line(job))} {reason(job, overall).split('. ')[0]}.",
            )
        case JobState.SCHEDULED:
            return reason(job, overall), f"Scheduled for {moment(job.run_at)}."
        case _:
            first = reason(job, overall)
            waited = (
                f"Ready for {age((now - job.ready_at).total_seconds())}."
                if job.ready_at and job.state == JobState.READY
                else ""
            )
            return first, waited


def _tries(job: Job) -> str:
    if job.attempt <= 1:
        return "At the first attempt."
    return f"At attempt {job.attempt}."


def _first_start(job: Job) -> datetime | None:
    return next((attempt.started_at for attempt in job.attempts if attempt.started_at), job.started_at)


def _span(start: datetime | None, end: datetime | None) -> str:
    return duration(max(0.0, (end - start).total_seconds())) if start and end else ""
