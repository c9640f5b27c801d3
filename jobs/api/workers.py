"""Worker hosts and workers: who is there, and telling them to go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.engine import Release, Worker, get_engine
from jobs.engine.workers import Command


def list() -> Sequence[Worker]:
    """All that were alive within the last hour, each host before its workers."""
    return get_engine().workers.all()


def releases(minutes: float = 43_200) -> Sequence[Release]:
    """The versions of your code that workers first told of in the last ``minutes``, oldest first: its deploys."""
    return get_engine().workers.releases(minutes)


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


def _command(id: str, command: Command) -> Worker:
    worker = get_engine().workers.command(id, command)
    audit.record(f"worker.{command}", id, before={"state": worker.state, "running": worker.running})
    return worker


alist = twin(list)
areleases = twin(releases)
aget = twin(get)
adrain = twin(drain, uses_database=True)
astop = twin(stop, uses_database=True)
