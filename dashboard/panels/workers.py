"""The workers by host: which slots are busy, with what, and who has gone silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpRequest

from dashboard import reads, stories
from dashboard.formats import plural
from dashboard.overall import Overall
from dashboard.paging import page_of
from dashboard.panels.base import Panel
from dashboard.permissions import OPERATE, may
from dashboard.standing import paused_words
from jobs.api import Worker
from jobs.core.job import Job, moment
from jobs.core.pause import Pause

PER_PAGE = 50
"""Hosts."""

CURRENT_SHOWN = 12
"""Running jobs of one worker that are named, the longest first."""

ASKED = 200
"""Running jobs, over all workers, that are asked how far they are."""


@dataclass(frozen=True)
class Running:
    """A job that a worker runs. ``job`` is None where it could not be read, or ended a moment ago."""

    id: str
    type: str
    seconds: float | None
    job: Job | None
    now: datetime

    @property
    def progress(self) -> str:
        return stories.progress_of(self.job, self.now) if self.job and self.job.progress else ""

    @property
    def left(self) -> float | None:
        """Seconds until its time limit; None where it has none, or nothing is known of it."""
        if self.job is None or self.job.timeout is None or self.seconds is None:
            return None
        return max(0.0, self.job.timeout - self.seconds)

    @property
    def is_stuck(self) -> bool:
        """It has told no progress for so long that it is called stalled."""
        return self.job is not None and self.job.silence(self.now) is not None


@dataclass(frozen=True)
class Member:
    """A worker (or its supervisor) as the page shows it."""

    worker: Worker
    current: tuple[Running, ...] = ()

    @property
    def seen_at(self) -> datetime:
        return moment(self.worker.last_seen_ms)

    @property
    def started_at(self) -> datetime:
        return moment(self.worker.started_at_ms)

    @property
    def slots(self) -> int:
        return sum(self.worker.pools.values())

    @property
    def stuck(self) -> int:
        return sum(running.is_stuck for running in self.current)

    @property
    def healthy(self) -> bool:
        return self.worker.alive and self.worker.state == "consuming"

    @property
    def current_more(self) -> int:
        return max(0, self.worker.running - len(self.current))


@dataclass(frozen=True)
class Host:
    """One ``runworkers``: its supervisor, if that has been heard from, and its workers."""

    id: str
    supervisor: Member | None
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        return next(member.worker.hostname for member in (*self.members, self.supervisor) if member is not None)

    @property
    def pid(self) -> int | None:
        return self.supervisor.worker.pid if self.supervisor else None

    @property
    def slots(self) -> int:
        return sum(member.slots for member in self.members if member.worker.alive)

    @property
    def running(self) -> int:
        return sum(member.worker.running for member in self.members if member.worker.alive)

    @property
    def is_leaving(self) -> bool:
        """Whether all of its workers take nothing new any more."""
        alive = [member.worker for member in self.members if member.worker.alive]
        return bool(alive) and all(worker.is_leaving for worker in alive)

    @property
    def alive(self) -> bool:
        return any(member.worker.alive for member in (*self.members, self.supervisor) if member is not None)

    @property
    def paused(self) -> Pause | None:
        return self.supervisor.worker.paused if self.supervisor else None

    @property
    def seen_at(self) -> datetime:
        return max(member.seen_at for member in (*self.members, self.supervisor) if member is not None)

    @property
    def version(self) -> str:
        return self.supervisor.worker.version if self.supervisor else next((m.worker.version for m in self.members), "")

    @property
    def rss(self) -> int:
        """Resident bytes of all its processes."""
        return sum(member.worker.rss for member in (*self.members, self.supervisor) if member and member.worker.alive)

    @property
    def gone_words(self) -> str:
        """Of a host that is silent: what it left behind."""
        running = sum(member.worker.running for member in self.members)
        return f"{plural(running, 'job')} ran on it, and will be taken back when the leases end" if running else ""

    @property
    def trouble(self) -> str:
        """Why it takes no jobs, or that it is silent; empty when all is well."""
        if not self.alive:
            return "silent"
        if self.paused is not None:
            return paused_words(msgspec.to_builtins(self.paused))
        unwell = [
            member.worker.state
            for member in (*self.members, self.supervisor)
            if member and not member.healthy and member.worker.alive
        ]
        return unwell[0] if unwell else ""


class Workers(Panel):
    slug = "workers"
    title = "Workers"
    icon = "workers"
    group = "Run"
    key = "w"

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        workers = reads.workers()
        hosts = by_host(workers)
        part = page_of(sorted(hosts, key=lambda host: not host.trouble), request.GET, PER_PAGE)
        return {
            "part": replace(part, items=_with_what_runs(part.items, workers, overall.now)),
            "newest": newest_version(hosts),
            "sentence": _sentence(hosts),
            "ended": [(host, moment(host.ended_at_ms)) for host in reads.ended_hosts()],
            "operates": may(request.user, OPERATE),
        }


def _with_what_runs(hosts: Sequence[Host], workers: Sequence[Worker], now: datetime) -> list[Host]:
    """The same hosts, in their order; only for those that are shown it is asked how far their jobs are."""
    shown = [host.id for host in hosts]
    theirs = [worker for worker in workers if worker.host in shown]
    found = {host.id: host for host in by_host(theirs, _running(theirs, now))}
    return [found[id] for id in shown]


def _running(workers: Sequence[Worker], now: datetime) -> dict[str, tuple[Running, ...]]:
    """What each worker runs, the longest first, with how far it is: all of them asked for at once."""
    told = {
        worker.id: sorted(worker.running_jobs(), key=lambda job: -(job["age_seconds"] or 0))[:CURRENT_SHOWN]
        for worker in workers
        if worker.alive
    }
    ids = [str(job.get("id")) for jobs in told.values() for job in jobs][:ASKED]
    found = {job.id: job for job in reads.jobs_by_id(ids) if job is not None and job.is_running} if ids else {}
    return {
        worker_id: tuple(
            Running(
                id=(id_ := str(job.get("id"))),
                type=str(job.get("type") or (found[id_].type if id_ in found else "")),
                seconds=job["age_seconds"],
                job=found.get(id_),
                now=now,
            )
            for job in jobs
        )
        for worker_id, jobs in told.items()
    }


def newest_version(hosts: Sequence[Host]) -> str:
    """The release of the living host that started last; older ones beside it are worth a look."""
    alive = [host for host in hosts if host.alive and host.supervisor and host.version]
    newest = max(alive, key=lambda host: host.supervisor.started_at if host.supervisor else host.seen_at, default=None)
    return newest.version if newest else ""


def by_host(workers: Sequence[Worker], running: Mapping[str, tuple[Running, ...]] | None = None) -> list[Host]:
    """Workers grouped by their host, living hosts first, then by name."""
    groups: dict[str, list[Member]] = {}
    for worker in workers:
        groups.setdefault(worker.host, []).append(Member(worker, (running or {}).get(worker.id, ())))
    hosts = [
        Host(
            host_id,
            next((member for member in members if member.worker.is_host), None),
            tuple(
                sorted((member for member in members if not member.worker.is_host), key=lambda member: member.worker.id)
            ),
        )
        for host_id, members in groups.items()
    ]
    return sorted(hosts, key=lambda host: (not host.alive, host.name, host.id))


def _sentence(hosts: Sequence[Host]) -> str:
    alive = [host for host in hosts if host.alive]
    if not alive:
        return "No worker is alive." if hosts else ""
    workers = sum(member.worker.alive for host in alive for member in host.members)
    sentence = f"{plural(workers, 'worker')} on {plural(len(alive), 'host')}"
    unwell = [host for host in alive if host.trouble]
    if unwell:
        return f"{sentence}; {plural(len(unwell), 'host takes', 'hosts take')} no new jobs."
    silent = len(hosts) - len(alive)
    return (
        f"{sentence}; {plural(silent, 'host')} went silent within the last hour."
        if silent
        else f"{sentence}, all of them heard from."
    )
