"""Worker hosts and workers: who is there, holding a host, and telling them to go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from jobs.api import audit, pauses
from jobs.api.asynchronous import twin
from jobs.api.pauses import Until
from jobs.core import options
from jobs.engine import EndedHost, Release, Worker, get_engine
from jobs.engine.workers import Command
from jobs.exceptions import OptionInvalid


def list() -> Sequence[Worker]:
    """All that were alive within the last hour, each host before its workers."""
    return get_engine().workers.all()


def ended() -> Sequence[EndedHost]:
    """The hosts that ended in good order within the last hour, and why, the latest first."""
    return get_engine().workers.ended()


def releases(minutes: float = 43_200) -> Sequence[Release]:
    """The versions of your code that workers first told of in the last ``minutes``, oldest first: its deploys."""
    return get_engine().workers.releases(minutes)


def newest_release(until: datetime | None = None) -> Release:
    """The last deploy of your code: the version that workers first told of last, not after ``until`` (aware).

    OptionInvalid where no worker has told of one.
    """
    if found := get_engine().workers.newest_release(until):
        return found
    raise OptionInvalid(
        "No deploy is known: no worker host has told of a version yet",
        fix="Start a worker host, or write a time: 90s, 5m, 2h, 7d or 2026-01-31T09:00:00Z.",
    )


def get(id: str) -> Worker:
    """One of them, with the types of the jobs that it runs. WorkerNotFound."""
    worker = get_engine().workers.get(id)
    jobs = get_engine().jobs.get_many(str(job.get("id")) for job in worker.current)
    current = [{**told, "type": job.type if job else None} for told, job in zip(worker.current, jobs, strict=True)]
    return msgspec.structs.replace(worker, current=current)


def drain(id: str) -> Worker:
    """Takes nothing new, finishes what runs however long that takes, then ends. WorkerNotFound."""
    return _command(id, "drain")


def stop(id: str) -> Worker:
    """Ends as on SIGTERM: what has not finished after the grace is handed back. WorkerNotFound."""
    return _command(id, "stop")


def pause(id: str, *, by: str | None = None, reason: str = "", until: Until = None) -> Worker:
    """A host takes no new jobs, from about a second after this; what runs goes on. Until resumed, or ``until`` (aware).

    It ends with the host: one that is started in its place takes jobs. ``by``: whoever acts now, if not given.
    WorkerNotFound where the host is not alive, WrongState for one worker of a host, OptionInvalid.
    """
    workers = get_engine().workers
    before = workers.pause(
        id,
        by=audit.actor().who if by is None else options.check_text("by", by),
        reason=(reason := options.check_text("reason", reason, may_be_empty=True)),
        until=pauses.end_of(until),
    )
    worker = workers.get(id)
    audit.record(
        "worker.pause", id, reason=reason, before=pauses.shown_pause(before), after=pauses.shown_pause(worker.paused)
    )
    return worker


def resume(id: str) -> Worker:
    """Ends the pause of a host. No error, and no record, where there is none. WorkerNotFound."""
    workers = get_engine().workers
    before = workers.resume(id)
    if before is not None:
        audit.record("worker.resume", id, before=pauses.shown_pause(before), after={"paused": None})
    return workers.get(id)


def _command(id: str, command: Command) -> Worker:
    worker = get_engine().workers.command(id, command)
    audit.record(f"worker.{command}", id, before={"state": worker.state, "running": worker.running})
    return worker


alist = twin(list)
aended = twin(ended)
areleases = twin(releases)
anewest_release = twin(newest_release)
aget = twin(get)
adrain = twin(drain, uses_database=True)
astop = twin(stop, uses_database=True)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
