"""What the hosts tell together: which of them has gone without a word, which still runs old code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.api import Worker

SILENT_FOR_MS = 600_000
"""A host that went without a word is news for so long; the page of workers names it for an hour."""

OLD_AFTER_MS = 600_000
"""So long two releases may run beside each other while one takes the place of the other."""


@dataclass(frozen=True)
class Fleet:
    """Names of hosts. ``newest``: the release of the one that started last."""

    silent: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    newest: str = ""


def fleet_of(workers: Sequence[Worker]) -> Fleet:
    """A host that came back under the same name is not silent."""
    alive = {worker.hostname for worker in workers if worker.alive}
    silent = {
        worker.hostname
        for worker in workers
        if not worker.alive and worker.is_host and worker.now_ms - worker.last_seen_ms <= SILENT_FOR_MS
    }
    hosts = [worker for worker in workers if worker.alive and worker.is_host and worker.version]
    newest = max(hosts, key=lambda host: host.started_at_ms, default=None)
    outdated: set[str] = set()
    if newest is not None and any(
        host.version == newest.version and host.now_ms - host.started_at_ms > OLD_AFTER_MS for host in hosts
    ):
        outdated = {host.hostname for host in hosts if host.version != newest.version}
    return Fleet(tuple(sorted(silent - alive)), tuple(sorted(outdated)), newest.version if newest else "")
