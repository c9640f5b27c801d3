"""What people see of pools, types and workers: the columns of the lists and the detail pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from jobs.api import EndedHost, Pool, PoolSettings, Scaling, Worker
from jobs.core.job import moment
from jobs.core.pause import by_whom
from jobs.management.output import Column, Output


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def pause_words(pause: dict[str, Any] | None) -> str | None:
    """Who paused it, since when, why, and until when."""
    if not pause:
        return None
    until = f", until {pause['until']}" if pause.get("until") else ""
    when = f"at {pause['at']}{until}"
    return f"paused {by_whom(pause['by'], pause.get('reason'), when=when)}"


def pool_rows(pools: Iterable[Pool]) -> list[dict[str, Any]]:
    """What ``POOLS`` shows of them: their JSON, and whether each host that serves one is paused on its own."""
    return [{**pool.as_dict(), "hosts_paused": pool.hosts_paused} for pool in pools]


def _pool_state(pool: dict[str, Any]) -> str:
    return "paused" if pool["paused"] else "hosts paused" if pool["hosts_paused"] else "on"


def type_state(document: dict[str, Any]) -> str:
    """Whether jobs of the type may start."""
    return pause_words(document["paused"]) or ("on" if document["enabled"] else "disabled in the admin")


TYPES: tuple[Column[dict[str, Any]], ...] = (
    Column("TYPE", lambda document: document["name"]),
    Column("POOL", lambda document: document["pool"]),
    Column("STATE", type_state, elastic=True),
)
"""Of job types as they stand in JSON."""

POOLS: tuple[Column[dict[str, Any]], ...] = (
    Column("POOL", lambda pool: pool["name"]),
    Column("STATE", _pool_state),
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
"""Of ``pool_rows``."""

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
            ("state", pause_words(document["paused"]) or ("hosts paused" if pool.hosts_paused else "on")),
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


def worker_state(worker: Worker) -> str:
    """What it does; ``gone`` when it has not been heard of for too long. A host is named as one."""
    state = worker.state if worker.alive else "gone"
    return f"{state} (host)" if worker.is_host else state


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


ENDED: tuple[Column[EndedHost], ...] = (
    Column("ID", lambda host: host.id),
    Column("MACHINE", lambda host: host.hostname),
    Column("PID", lambda host: host.pid, right=True),
    Column("STARTED", lambda host: moment(host.started_at_ms)),
    Column("ENDED", lambda host: moment(host.ended_at_ms)),
    Column("HANDED BACK", lambda host: host.handed_back, right=True),
    Column("WHY", lambda host: host.why, elastic=True),
)
"""Of worker hosts that have ended in good order."""


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
