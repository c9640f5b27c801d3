"""What people may see of jobs, and the one way to see more: by name, on the record.

``get_job`` and its like answer what is stored: programs need it. Whoever shows it to people shows ``shown`` of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    "shown_results",
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
    visible, jobs = get_engine().visible, _jobs_of([view for view in views if view.error and view.job][:ERRORS_READ])

    def masked(view: NodeView) -> Any:
        if view.job and view.job not in jobs:
            return {**(view.error or {}), "message": MASK, "traceback": ""}
        return visible.error(view.error, jobs.get(view.job or ""))

    return [msgspec.structs.replace(view, error=masked(view)) if view.error else view for view in views]


def shown_results(results: Mapping[str, Any], views: Sequence[NodeView]) -> dict[str, Any]:
    """Results by key of nodes, as people may see them: they do not tell what the payloads of their jobs hide."""
    visible, nodes = get_engine().visible, {view.key: view for view in views}
    jobs = _jobs_of(view for view in views if view.scope or view.key in results)

    def masked(key: str, value: Any) -> Any:
        view = nodes[key]
        if not view.kind.is_group:
            return visible.result(view.type, value, jobs.get(view.job or ""))
        # What a group has made is put together of what its members have.
        parts = dict(enumerate(value)) if isinstance(value, list) else value if isinstance(value, dict) else {}
        if not parts or any(f"{key}:{part}" not in nodes for part in parts):
            return visible.value(view.type, value)
        shown = {part: masked(f"{key}:{part}", item) for part, item in parts.items()}
        return [*shown.values()] if isinstance(value, list) else shown

    return {key: masked(key, value) for key, value in results.items()}


def _jobs_of(views: Iterable[NodeView]) -> dict[str, Job | None]:
    """The jobs of nodes by id."""
    ids = [view.job for view in views if view.job]
    return dict(zip(ids, get_engine().jobs.get_many(ids), strict=True)) if ids else {}


def reveal(id: str, *, reason: str = "") -> Job:
    """The job with nothing masked, and an entry in the audit log about who looked. JobNotFound."""
    job = get_job(id)
    audit.record("job.reveal", id, reason=reason, after={"type": job.type, "pool": job.pool})
    return job


def tell_exported(noun: str, names: Sequence[str]) -> None:
    """An entry in the audit log about each definition of which somebody took a copy with nothing masked."""
    for name in names:
        audit.record(f"{noun}.export", name)


areveal = twin(reveal, uses_database=True)
