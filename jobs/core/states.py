"""The states of a job, and which of them follow which."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. The value is the word used in keys, JSON, pages and the command line.

    Records store the position in this order: new states go to the end.
    """

    SCHEDULED = "scheduled"  # waits for run_at; moved out by promotion, cancel, run-now
    BLOCKED = "blocked"  # waits for workflow parents; moved out by parents ending, cancel
    READY = "ready"  # may be leased; moved out by a lease, cancel
    LEASED = "leased"  # owned by a worker; moved out by complete, fail, release, lease expiry, cancel
    RETRY_WAIT = "retry_wait"  # failed, waits for its backoff; moved out by promotion, cancel, run-now
    SUCCEEDED = "succeeded"  # done; removed by retention, revived by the retry of a workflow
    DEAD = "dead"  # in the DLQ; moved out by resubmit, discard
    CANCELLED = "cancelled"  # stopped on request; removed by retention, revived by resubmit
    SKIPPED = "skipped"  # a workflow node whose condition can no longer hold; removed by retention


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.SKIPPED})
LIVE = frozenset(JobState) - TERMINAL

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.SCHEDULED: frozenset({JobState.READY, JobState.CANCELLED}),
    JobState.BLOCKED: frozenset({JobState.READY, JobState.SCHEDULED, JobState.CANCELLED, JobState.SKIPPED}),
    JobState.READY: frozenset({JobState.LEASED, JobState.CANCELLED, JobState.DEAD}),
    JobState.LEASED: frozenset(
        {
            JobState.SUCCEEDED,
            JobState.RETRY_WAIT,
            JobState.DEAD,
            JobState.READY,
            JobState.SCHEDULED,
            JobState.CANCELLED,
        }
    ),
    JobState.RETRY_WAIT: frozenset({JobState.READY, JobState.CANCELLED}),
    JobState.SUCCEEDED: frozenset({JobState.READY}),
    JobState.DEAD: frozenset({JobState.READY}),
    JobState.CANCELLED: frozenset({JobState.READY}),
    JobState.SKIPPED: frozenset(),
}
"""State → states that one verb may lead to. ``ready → dead`` is a corrupt job found at the lease;
``succeeded → ready`` is for nodes of a workflow that is retried from one of them, and for no other job."""
