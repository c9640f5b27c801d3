"""What attempts have logged through ``ctx.log``."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.api.asynchronous import twin
from jobs.core.job import Job, Route
from jobs.engine import LogPage, get_engine


def job_logs(job: str | Job, attempt: int | None = None, *, after: Mapping[int, int] | None = None) -> LogPage:
    """The lines of a job (or of the job with this id), oldest first: those of one attempt, or of all. JobNotFound.

    ``after``: the ``cursor()`` of a page that was read before; only what came since is answered.
    """
    engine = get_engine()
    found = engine.jobs.get(job) if isinstance(job, str) else job
    route = Route(found.pool, found.queue_version, found.partition)
    return engine.logs.read(route, found.id, attempt=attempt, after=after)


ajob_logs = twin(job_logs)
