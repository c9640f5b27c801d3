"""What people see of a job, an error group, a pool and a worker: the columns of the lists and the detail pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone

from jobs import api
from jobs.api import BulkOperation, ErrorGroup, LogPage, Mute, Page, Pool, PoolSettings, Reason, Scaling, Worker
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


def worker_state(worker: Worker) -> str:
    """What it does; ``gone`` when it has not been heard of for too long. A host is named as one."""
    state = worker.state if worker.alive else "gone"
    return f"{state} (host)" if worker.is_host else state


POOLS: tuple[Column[dict[str, Any]], ...] = (
    Column("POOL", lambda pool: pool["name"]),
    Column("STATE", lambda pool: "paused" if pool["paused"] else "on"),
    Column("READY", lambda pool: pool["ready"], right=True),
    Column("LEASED", lambda pool: pool["leased"], right=True),
    Column("SCHEDULED", lambda pool: pool["scheduled"], right=True),
    Column("RETRYING", lambda pool: pool["retry_wait"], right=True),
    Column("DEAD", lambda pool: pool["dead"], right=True),
    Column("WORKERS", lambda pool: pool["workers"], right=True),
    Column("SLOTS", lambda pool: pool["slots"], right=True),
    Column("IN ALL", lambda pool: pool["slots_actual"], right=True),
    Column("OLDEST", lambda pool: _span(pool["oldest_ready_age_seconds"]), right=True),
    Column("WAIT", lambda pool: _span(pool["predicted_wait_seconds"]), right=True),
    Column("JOBS/S", lambda pool: pool["throughput_per_second"], right=True),
)
"""Of pools as they stand in JSON."""

WORKERS: tuple[Column[Worker], ...] = (
    Column("ID", lambda worker: worker.id),
    Column("STATE", worker_state),
    Column("PAUSED UNTIL", lambda worker: (worker.paused.until or "resumed") if worker.paused else ""),
    Column("POOLS", lambda worker: ", ".join(f"{pool}:{slots}" for pool, slots in worker.pools.items())),
    Column("RUNNING", lambda worker: worker.running, right=True),
    Column("MACHINE", lambda worker: worker.hostname),
    Column("PID", lambda worker: worker.pid, right=True),
    Column("CPU", lambda worker: f"{worker.cpu:.0%}", right=True),
    Column("MEMORY", lambda worker: f"{worker.rss / 2**20:.0f} MB", right=True),
    Column("STARTED", lambda worker: moment(worker.started_at_ms)),
    Column("SEEN", lambda worker: moment(worker.last_seen_ms)),
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


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def took(start: datetime | None, end: datetime | None) -> timedelta | None:
    return end - start if start and end else None


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def pause_words(pause: dict[str, Any] | None) -> str | None:
    """Who paused it, since when, why, and until when."""
    if not pause:
        return None
    until = f", until {pause['until']}" if pause.get("until") else ""
    reason = f": {pause['reason']}" if pause.get("reason") else ""
    return f"paused by {pause['by']} at {pause['at']}{until}{reason}"


def type_state(document: dict[str, Any]) -> str:
    """Whether jobs of the type may start."""
    return pause_words(document["paused"]) or ("on" if document["enabled"] else "disabled in the admin")


TYPES: tuple[Column[dict[str, Any]], ...] = (
    Column("TYPE", lambda document: document["name"]),
    Column("POOL", lambda document: document["pool"]),
    Column("STATE", type_state, elastic=True),
)
"""Of job types as they stand in JSON."""

SCALINGS: tuple[Column[Scaling], ...] = (
    Column("AT", lambda made: moment(made.last_at_ms)),
    Column("TIMES", lambda made: made.times, right=True),
    Column("SLOTS", lambda made: f"{made.before} → {made.after}" if made.is_change else str(made.after), right=True),
    Column("WAIT", lambda made: _span(made.predicted_wait_seconds), right=True),
    Column("OLDEST", lambda made: _span(made.oldest_wait_seconds), right=True),
    Column("READY", lambda made: made.ready, right=True),
    Column("RUNNING", lambda made: made.running, right=True),
    Column("REASON", lambda made: made.reason + (" (dry run)" if made.dry_run else ""), elastic=True),
)
SCALINGS_SHOWN = 15


def autoscale_words(settings: PoolSettings) -> str | None:
    """By what rule the pool is sized; None where by hand."""
    rule = settings.autoscale
    if rule is None:
        return None
    return (
        f"{'dry run' if rule.dry_run else 'on'}: {rule.min_slots} to {rule.max_slots} slots for a wait of "
        f"{rule.target_wait_seconds:g} s ± {rule.tolerance_seconds:g} s, a change every {rule.cooldown_seconds:g} s"
    )


def show_autoscale(output: Output, name: str, settings: PoolSettings, history: Sequence[Scaling]) -> None:
    """The rule of a pool and what was decided by it."""
    if output.as_json:
        rule = msgspec.to_builtins(settings.autoscale) if settings.autoscale else None
        output.document({"name": name, "autoscale": rule, "decisions": [made.as_dict() for made in history]})
        return
    output.facts([("pool", name), ("autoscale", autoscale_words(settings) or "off")])
    if history:
        output.heading("Decisions")
        output.table(SCALINGS, list(history)[-SCALINGS_SHOWN:])


def show_pool(output: Output, pool: Pool, settings: PoolSettings | None = None) -> None:
    document = pool.as_dict()
    if output.as_json:
        output.document(document)
        return
    output.facts(
        [
            ("pool", pool.name),
            ("state", pause_words(document["paused"]) or "on"),
            ("slots", f"{pool.slots} per worker process, {pool.slots_actual} in all"),
            ("autoscale", autoscale_words(settings) if settings else None),
            ("workers", pool.workers),
            ("max running", pool.max_running),
            ("max pending", pool.max_pending),
            ("ready", pool.ready),
            ("parked", f"{pool.parked} of the ready ones: no worker knows their type" if pool.parked else None),
            ("scheduled", pool.scheduled),
            ("retry_wait", pool.retry_wait),
            ("leased", pool.leased),
            ("dead", pool.dead),
            ("oldest ready", _span(pool.oldest_ready_age_seconds)),
            ("expected wait", _span(pool.predicted_wait_seconds)),
            ("jobs per second", pool.throughput_per_second),
        ]
    )


def show_worker(output: Output, worker: Worker) -> None:
    document = worker.as_dict()
    if output.as_json:
        output.document(document)
        return
    output.facts(
        [
            ("id", worker.id),
            ("state", worker_state(worker)),
            ("paused", pause_words(document["paused"])),
            ("host", worker.host if not worker.is_host else None),
            ("machine", worker.hostname),
            ("pid", worker.pid),
            ("pools", ", ".join(f"{pool}: {slots} slots" for pool, slots in worker.pools.items())),
            ("running", worker.running),
            ("memory", f"{worker.rss / 2**20:.0f} MB"),
            ("processor", f"{worker.cpu:.0%} of one, {worker.cpu_seconds:,.1f} s since its start"),
            ("version", worker.version),
            ("started", moment(worker.started_at_ms)),
            ("last seen", moment(worker.last_seen_ms)),
        ]
    )
    if worker.current:
        output.heading("Running")
        output.table(CURRENT, worker.running_jobs())


CURRENT: tuple[Column[dict[str, Any]], ...] = (
    Column("JOB", lambda job: job.get("id")),
    Column("TYPE", lambda job: job.get("type")),
    Column("STARTED", lambda job: job.get("started_at")),
    Column("FOR", lambda job: _span(job.get("age_seconds")), right=True),
)


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
