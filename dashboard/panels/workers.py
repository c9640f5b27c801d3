"""The workers by host: which slots are busy, with what, and who has gone silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from dashboard import reads
from dashboard.formats import plural
from dashboard.panels.base import Panel
from dashboard.permissions import OPERATE, may
from dashboard.reads import Overall
from jobs.api import Worker
from jobs.core.job import moment

CURRENT_SHOWN = 12


@dataclass(frozen=True)
class Member:
    """A worker (or its supervisor) as the page shows it."""

    worker: Worker

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
    def healthy(self) -> bool:
        return self.worker.alive and self.worker.state == "consuming"

    @property
    def current(self) -> list[dict[str, Any]]:
        return self.worker.current[:CURRENT_SHOWN]

    @property
    def current_more(self) -> int:
        return max(0, len(self.worker.current) - CURRENT_SHOWN)


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
    def alive(self) -> bool:
        return any(member.worker.alive for member in (*self.members, self.supervisor) if member is not None)

    @property
    def seen_at(self) -> datetime:
        return max(member.seen_at for member in (*self.members, self.supervisor) if member is not None)

    @property
    def trouble(self) -> str:
        """Why it takes no jobs, or that it is silent; empty when all is well."""
        if not self.alive:
            return "silent"
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
        hosts = by_host(reads.workers())
        return {"hosts": hosts, "sentence": _sentence(hosts), "operates": may(request.user, OPERATE)}


def by_host(workers: Sequence[Worker]) -> list[Host]:
    """Workers grouped by their host, living hosts first, then by name."""
    groups: dict[str, list[Member]] = {}
    for worker in workers:
        groups.setdefault(worker.host, []).append(Member(worker))
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
