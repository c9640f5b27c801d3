"""What attempts have logged through ``ctx.log``."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.api.asynchronous import twin
from jobs.core.job import Route
from jobs.engine import LogPage, get_engine


def job_logs(id: str, attempt: int | None = None, *, after: Mapping[int, int] | None = None) -> LogPage:
    """The lines of a job, oldest first: those of one attempt, or of all. JobNotFound.

    ``after``: the ``cursor()`` of a page that was read before; only what came since is answered.
    """
    engine = get_engine()
    job = engine.jobs.get(id)
    route = Route(job.pool, job.queue_version, job.partition)
    return engine.logs.read(route, id, attempt=attempt, after=after)


ajob_logs = twin(job_logs)
