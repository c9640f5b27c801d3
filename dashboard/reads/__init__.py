"""Everything the pages read of the engine goes through here: what must be hidden from a reader is hidden in this one
place, and what cannot be read is answered with the last that was known and its age, never with a server error.
"""

from __future__ import annotations

from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from dashboard.reads import of_pools, of_runs, of_schedules, of_store, whole
from dashboard.reads.of_jobs import (
    LOOKS_AT,
    Groups,
    bulk_done,
    bulk_operation,
    bulk_operations,
    bulk_refusals,
    count_within,
    dead_sample,
    done_to,
    error_groups,
    error_groups_from,
    job,
    job_log,
    jobs,
    jobs_by_id,
    refusal_of_move,
    revealed,
    why,
)
from dashboard.reads.of_pools import (
    backlog,
    ended_hosts,
    newest_release,
    next_due,
    pace,
    points,
    pool_settings,
    releases,
    scalings,
    settings,
    topology,
    types_of,
    workers,
)
from dashboard.reads.of_runs import (
    comparison,
    first_failures,
    reach_of_runs,
    retry_plan,
    run,
    run_nodes,
    run_waiting,
    runs,
    workflows,
)
from dashboard.reads.of_schedules import (
    forecast,
    next_to_fire,
    reach_of_schedules,
    schedule,
    schedule_changes,
    schedule_status,
    schedules,
    schedules_named,
)
from dashboard.reads.of_store import diagnosis
from dashboard.reads.whole import forget_mutes, last_known, mutes, overall

ROOMS = (whole, of_pools, of_runs, of_schedules, of_store)


def forget() -> None:
    """All that was read: the next page reads it anew."""
    for room in ROOMS:
        room.forget()


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting == "SCHEDULER":
        forget()


__all__ = [
    "LOOKS_AT",
    "Groups",
    "backlog",
    "bulk_done",
    "bulk_operation",
    "bulk_operations",
    "bulk_refusals",
    "comparison",
    "count_within",
    "dead_sample",
    "diagnosis",
    "done_to",
    "ended_hosts",
    "error_groups",
    "error_groups_from",
    "first_failures",
    "forecast",
    "forget",
    "forget_mutes",
    "job",
    "job_log",
    "jobs",
    "jobs_by_id",
    "last_known",
    "mutes",
    "newest_release",
    "next_due",
    "next_to_fire",
    "overall",
    "pace",
    "points",
    "pool_settings",
    "reach_of_runs",
    "reach_of_schedules",
    "refusal_of_move",
    "releases",
    "retry_plan",
    "revealed",
    "run",
    "run_nodes",
    "run_waiting",
    "runs",
    "scalings",
    "schedule",
    "schedule_changes",
    "schedule_status",
    "schedules",
    "schedules_named",
    "settings",
    "topology",
    "types_of",
    "why",
    "workers",
    "workflows",
]
