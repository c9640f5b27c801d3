"""What people see of jobs, error groups and bulk operations: the columns of the lists and the detail pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone

from jobs import api
from jobs.api import BulkOperation, ErrorGroup, LogPage, Mute, Page, Reason
from jobs.core.job import Attempt, Job, iso, moment
from jobs.core.states import JobState
from jobs.management.durations import spoken
from jobs.management.output import Column, Output


def state_word(job: Job) -> str:
    """The state in the words of a person: a started job is running, a cancel under way is said."""
    if job.cancel_requested and not job.is_terminal:
        return f"{job.state.value} (cancel requested)"
    if job.parked:
        return "ready (parked)"
    if job.throttled:
        return "ready (throttled)"
    return "running" if job.is_running else job.state.value


def why_parked(job: Job) -> str | None:
    """Why a parked job does not run, and what to do; None for others."""
    if not job.parked:
        return None
    if job.workflow_run:
        return f"Its run is paused, or {job.type} is, or is unknown here: see `manage.py workflows show`, `types list`"
    return f"{job.type} is paused or disabled, or unknown to the workers that met it: see `manage.py types list`"


def since(job: Job) -> datetime | None:
    """The moment that matters in this state: when it will start, has started, has ended."""
    match job.state:
        case JobState.SCHEDULED | JobState.RETRY_WAIT:
            return job.run_at
        case JobState.LEASED:
            return job.started_at or job.leased_at
        case JobState.READY:
            return job.ready_at or job.created_at
        case JobState.BLOCKED:
            return job.created_at
        case _:
            return job.finished_at


def detail(job: Job) -> str | None:
    """What there is to say of it: its error, or how far it is."""
    if job.error and not (job.is_running or job.state is JobState.SUCCEEDED):
        return f"{job.error.get('type')}: {job.error.get('message')}"
    return _progress(job)


def _progress(job: Job) -> str | None:
    if not job.progress:
        return None
    current, total, message = (job.progress.get(key) for key in ("current", "total", "message"))
    words = " ".join(part for part in (f"{current}" + (f" of {total}" if total else ""), message) if part)
    silence = job.silence(timezone.now())
    return f"{words} (stalled: nothing new for {spoken(silence)})" if silence else words


JOBS: tuple[Column[Job], ...] = (
    Column("ID", lambda job: job.id),
    Column("TYPE", lambda job: job.type),
    Column("POOL", lambda job: job.pool),
    Column("STATE", state_word),
    Column("ATTEMPT", lambda job: job.attempt, right=True),
    Column("WHEN", since),
    Column("DETAIL", detail, elastic=True),
)

DEAD: tuple[Column[Job], ...] = (
    Column("ID", lambda job: job.id),
    Column("TYPE", lambda job: job.type),
    Column("POOL", lambda job: job.pool),
    Column("ATTEMPTS", lambda job: job.attempt, right=True),
    Column("DIED", lambda job: job.finished_at),
    Column("ERROR", detail, elastic=True),
)

ATTEMPTS: tuple[Column[Attempt], ...] = (
    Column("ATTEMPT", lambda attempt: attempt.attempt, right=True),
    Column("OUTCOME", lambda attempt: attempt.outcome),
    Column("WORKER", lambda attempt: attempt.worker),
    Column("STARTED", lambda attempt: attempt.started_at),
    Column("TOOK", lambda attempt: took(attempt.started_at, attempt.finished_at)),
    Column(
        "ERROR",
        lambda attempt: f"{attempt.error.get('type')}: {attempt.error.get('message')}" if attempt.error else None,
        elastic=True,
    ),
)


GROUPS: tuple[Column[ErrorGroup], ...] = (
    Column("GROUP", lambda group: group.fingerprint),
    Column("COUNT", lambda group: group.count, right=True),
    Column("LAST", lambda group: group.last_seen),
    Column("FIRST", lambda group: group.first_seen),
    Column("TYPES", lambda group: ", ".join(group.types)),
    Column("ERROR", lambda group: f"{group.error_type}: {group.pattern}", elastic=True),
)


def job_dict(job: Job, *, reveal: bool = False) -> dict[str, Any]:
    """The JSON of a job, with its secrets masked unless ``reveal``."""
    return (job if reveal else api.shown(job)).as_dict()


def show_page(output: Output, page: Page, columns: Sequence[Column[Job]], *, empty: str) -> None:
    """One page of jobs and how to get the next."""
    jobs = [api.shown(job) for job in page.items]
    if output.as_json:
        output.document({"items": [job.as_dict() for job in jobs], "next_cursor": page.next_cursor})
        return
    if not page.items:
        output.hint(empty)
        return
    output.table(columns, jobs)
    if page.next_cursor:
        output.hint(f"There are more: --cursor {page.next_cursor}")


def show_job(output: Output, job: Job, *, reveal: bool = False, reason: Reason | None = None) -> None:
    """All that is known of one job. ``reason``: why it does not run, where that was asked."""
    job = job if reveal else api.shown(job)
    if output.as_json:
        output.document(job.as_dict())
        return
    output.facts(
        [
            ("id", job.id),
            ("type", job.type),
            ("pool", job.pool),
            ("state", state_word(job)),
            ("why", reason.message if reason else why_parked(job)),
            ("priority", job.priority),
            ("tags", ", ".join(job.tags) or None),
            ("meta", ", ".join(f"{key}={value}" for key, value in job.meta.items()) or None),
            ("unique key", job.unique_key),
            ("created", job.created_at),
            ("due", job.run_at if job.state in {JobState.SCHEDULED, JobState.RETRY_WAIT} else None),
            ("started", job.started_at),
            ("finished", job.finished_at),
            ("took", took(job.started_at, job.finished_at)),
            (
                "attempt",
                f"{job.attempt} of {job.max_retries + 1}" + (f", {job.crashes} crashed" if job.crashes else ""),
            ),
            ("timeout", timedelta(seconds=job.timeout) if job.timeout else None),
            ("progress", _progress(job)),
            ("worker", None if job.parked else job.worker),
            ("lease until", job.lease_expires_at),
            ("schedule", job.schedule),
            ("workflow run", job.workflow_run),
            ("node", job.node),
            ("resubmissions", job.resubmissions or None),
        ]
    )
    output.heading("Payload")
    output.text("corrupt: what is stored cannot be read" if job.payload is None else _pretty(job.payload))
    if job.result is not None:
        output.heading("Result")
        output.text(_pretty(job.result))
    if job.attempts:
        output.heading("Attempts")
        output.table(ATTEMPTS, job.attempts)
    if job.error:
        output.heading("Error")
        output.text(job.error.get("traceback") or f"{job.error.get('type')}: {job.error.get('message')}")


def show_logs(output: Output, page: LogPage) -> None:
    """What the attempts of one job have logged."""
    output.heading("Log")
    for attempt, gone in page.gone.items():
        output.line(f"attempt {attempt}: the first {gone:,} lines made room for newer ones")
    for line in page.lines:
        output.line(f"{iso(line.at)}  {line.attempt}  {line.level:<7}  {line.text}")
        if line.traceback:
            output.text(line.traceback)
    if not page.lines:
        output.line("Nothing was logged through ctx.log.")


def took(start: datetime | None, end: datetime | None) -> timedelta | None:
    return end - start if start and end else None


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def operation_dict(operation: BulkOperation) -> dict[str, Any]:
    """A bulk operation as JSON."""
    request = operation.request
    return {
        "id": operation.id,
        "action": request.action,
        "state": operation.state,
        "filter": msgspec.to_builtins(request.filter),
        "by": request.by,
        "reason": request.reason,
        "rate": request.rate,
        "undoes": request.undoes or None,
        "total": operation.total,
        "done": operation.done,
        "refused": operation.refused,
        "unsure": operation.unsure,
        "created_at": iso(moment(operation.opened_at_ms)),
        "finished_at": iso(moment(operation.ended_at_ms)) if operation.ended_at_ms else None,
    }


def operation_words(operation: BulkOperation) -> str:
    """``resubmit 4Zk2: running, 212 of 4,812 done, 2 refused``"""
    words = (
        f"{operation.request.action} {operation.id}: {operation.state}, {operation.done:,} of {operation.total:,} done"
    )
    words += f", {operation.refused:,} refused" if operation.refused else ""
    return words + (f", of {operation.unsure:,} it is not known" if operation.unsure else "")


MUTES: tuple[Column[Mute], ...] = (
    Column("KIND", lambda mute: mute.kind),
    Column("SUBJECT", lambda mute: mute.subject),
    Column("UNTIL", lambda mute: moment(mute.until_ms)),
    Column("BY", lambda mute: mute.who),
    Column("REASON", lambda mute: mute.reason),
    Column("ERROR", lambda mute: mute.words, elastic=True),
)


def mute_dict(mute: Mute) -> dict[str, Any]:
    """The JSON of a mute."""
    fields = ("kind", "subject", "who", "reason", "words")
    return {name: getattr(mute, name) for name in fields} | {"until": iso(moment(mute.until_ms))}


OPERATIONS: tuple[Column[BulkOperation], ...] = (
    Column("ID", lambda operation: operation.id),
    Column("ACTION", lambda operation: operation.request.action),
    Column("STATE", lambda operation: operation.state),
    Column("DONE", lambda operation: operation.done, right=True),
    Column("REFUSED", lambda operation: operation.refused, right=True),
    Column("TOTAL", lambda operation: operation.total, right=True),
    Column("BY", lambda operation: operation.request.by),
    Column("CREATED", lambda operation: moment(operation.opened_at_ms)),
)
