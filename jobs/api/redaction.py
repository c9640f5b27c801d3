"""What people may see of jobs, and the one way to see more: by name, on the record.

``get_job`` and its like answer what is stored: programs need it. Whoever shows it to people shows ``shown`` of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.jobs import get_job
from jobs.core.job import Job
from jobs.core.redaction import MASK, restored
from jobs.core.workflow import NodeView
from jobs.engine import LogPage, get_engine

__all__ = [
    "areveal",
    "restored",
    "reveal",
    "shown",
    "shown_log",
    "shown_nodes",
    "shown_payload",
    "shown_text",
    "shown_value",
]

ERRORS_READ = 500
"""Of so many failed nodes the jobs are asked for what their payloads hide; of more only the kind of error is shown."""


def shown(job: Job) -> Job:
    """The job as people may see it: secrets of its payload are masked there and wherever they are repeated."""
    return get_engine().visible.job(job)


def shown_payload(job: Job) -> Any:
    """The payload as people may see it."""
    return shown(job).payload


def shown_value(type: str, value: Any) -> Any:
    """The same for data of a type of which there is no job, such as the payload of a schedule."""
    return get_engine().visible.value(type, value)


def shown_text(text: str) -> str:
    """A text without ``key=value`` of keys that hide, and without passwords in addresses."""
    return get_engine().visible.text(text)


def shown_log(job: Job, page: LogPage) -> LogPage:
    """What a job has logged, as people may see it. ``job``: as ``get_job`` answers it."""
    return msgspec.structs.replace(page, lines=get_engine().visible.lines(job, page.lines))


def shown_nodes(views: Sequence[NodeView]) -> list[NodeView]:
    """Nodes of runs as people may see them: their errors do not tell what the payloads of their jobs hide."""
    visible = get_engine().visible
    asked = [view.job for view in views if view.error and view.job][:ERRORS_READ]
    jobs = dict(zip(asked, get_engine().jobs.get_many(asked), strict=True)) if asked else {}

    def masked(view: NodeView) -> Any:
        if view.job and view.job not in jobs:
            return {**(view.error or {}), "message": MASK, "traceback": ""}
        return visible.error(view.error, jobs.get(view.job or ""))

    return [msgspec.structs.replace(view, error=masked(view)) if view.error else view for view in views]


def reveal(id: str, *, reason: str = "") -> Job:
    """The job with nothing masked, and an entry in the audit log about who looked. JobNotFound."""
    job = get_job(id)
    audit.record("job.reveal", id, reason=reason, after={"type": job.type, "pool": job.pool})
    return job


areveal = twin(reveal, uses_database=True)
