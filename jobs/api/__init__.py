"""Everything that other code may use: the rest of the project, the command line, the dashboard, and users.

``from jobs import …`` gives the same names without importing any of it before it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobs.api import audit, bulk, matching, mutes, pools, reach, scheduler, stats, topology, types, workers, workflows
from jobs.api.bulk import amove, move
from jobs.api.configuration import Setting, settings
from jobs.api.dead_letters import DeadSample, ErrorGroup, aerror_groups, error_groups, group_errors, newest_dead
from jobs.api.following import follow
from jobs.api.handle import JobHandle
from jobs.api.job_type import JobType, job
from jobs.api.jobs import (
    acancel,
    acancel_many,
    adiscard,
    adiscard_many,
    aexplain,
    aget_job,
    aget_jobs,
    alist_jobs,
    aprioritize,
    aresubmit,
    aresubmit_many,
    aretry,
    arun_now,
    await_,
    cancel,
    cancel_many,
    discard,
    discard_many,
    explain,
    get_job,
    get_jobs,
    list_jobs,
    prioritize,
    prioritize_many,
    resubmit,
    resubmit_many,
    retry,
    run_now,
    wait,
)
from jobs.api.logs import ajob_logs, job_logs
from jobs.api.matching import (
    BulkProgress,
    acancel_matching,
    acount_matching,
    adiscard_matching,
    aresubmit_matching,
    cancel_matching,
    count_matching,
    discard_matching,
    resubmit_matching,
)
from jobs.api.producer import aenqueue, aenqueue_many, enqueue, enqueue_many
from jobs.api.redaction import (
    areveal,
    restored,
    reveal,
    shown,
    shown_log,
    shown_nodes,
    shown_payload,
    shown_text,
    shown_value,
)
from jobs.api.store import aserver, aserver_info, budget, moment, server, server_info
from jobs.core.context import Context, current_context
from jobs.core.job import EnqueueRequest, Job
from jobs.core.pause import Pause
from jobs.core.retry import Cancelled, Dead, Exponential, Fixed, Linear, Retry, Snooze
from jobs.core.schedule import Cron, Interval
from jobs.core.workflow import Workflow
from jobs.engine import (
    BulkNotFound,
    BulkOperation,
    EndedHost,
    JobFilter,
    LogPage,
    Mute,
    MuteKind,
    Noted,
    Page,
    Partition,
    Point,
    Pool,
    PoolNotFound,
    PoolSettings,
    Reason,
    Release,
    Scaling,
    Snapshot,
    Worker,
    WorkerNotFound,
)
from jobs.registry import JobType as RegisteredType
from jobs.registry import UniqueBy, registry

if TYPE_CHECKING:
    from jobs.api import schedules, tokens


def __getattr__(name: str) -> Any:
    # These are rows, and models can be imported only when Django is set up; the rest works before.
    if name in ("schedules", "tokens"):
        return import_module(f"jobs.api.{name}")
    raise AttributeError(f"module 'jobs.api' has no attribute {name!r}")


def job_types() -> dict[str, RegisteredType[..., Any]]:
    """The job types registered in this process, by name."""
    return registry.all()


__all__ = [
    "BulkNotFound",
    "BulkOperation",
    "BulkProgress",
    "Cancelled",
    "Context",
    "Cron",
    "Dead",
    "DeadSample",
    "EndedHost",
    "EnqueueRequest",
    "ErrorGroup",
    "Exponential",
    "Fixed",
    "Interval",
    "Job",
    "JobFilter",
    "JobHandle",
    "JobType",
    "Linear",
    "LogPage",
    "Mute",
    "MuteKind",
    "Noted",
    "Page",
    "Partition",
    "Pause",
    "Point",
    "Pool",
    "PoolNotFound",
    "PoolSettings",
    "Reason",
    "Release",
    "Retry",
    "Scaling",
    "Setting",
    "Snapshot",
    "Snooze",
    "UniqueBy",
    "Worker",
    "WorkerNotFound",
    "Workflow",
    "acancel",
    "acancel_many",
    "acancel_matching",
    "acount_matching",
    "adiscard",
    "adiscard_many",
    "adiscard_matching",
    "aenqueue",
    "aenqueue_many",
    "aerror_groups",
    "aexplain",
    "aget_job",
    "aget_jobs",
    "ajob_logs",
    "alist_jobs",
    "amove",
    "aprioritize",
    "aresubmit",
    "aresubmit_many",
    "aresubmit_matching",
    "aretry",
    "areveal",
    "arun_now",
    "aserver",
    "aserver_info",
    "audit",
    "await_",
    "budget",
    "bulk",
    "cancel",
    "cancel_many",
    "cancel_matching",
    "count_matching",
    "current_context",
    "discard",
    "discard_many",
    "discard_matching",
    "enqueue",
    "enqueue_many",
    "error_groups",
    "explain",
    "follow",
    "get_job",
    "get_jobs",
    "group_errors",
    "job",
    "job_logs",
    "job_types",
    "list_jobs",
    "matching",
    "moment",
    "move",
    "mutes",
    "newest_dead",
    "pools",
    "prioritize",
    "prioritize_many",
    "reach",
    "restored",
    "resubmit",
    "resubmit_many",
    "resubmit_matching",
    "retry",
    "reveal",
    "run_now",
    "scheduler",
    "schedules",
    "server",
    "server_info",
    "settings",
    "shown",
    "shown_log",
    "shown_nodes",
    "shown_payload",
    "shown_text",
    "shown_value",
    "stats",
    "tokens",
    "topology",
    "types",
    "wait",
    "workers",
    "workflows",
]
