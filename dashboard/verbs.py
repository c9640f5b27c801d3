"""What people may do to jobs: the verbs with their words, where each makes sense and who may use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from dashboard import reads
from dashboard.permissions import ADMINISTER, OPERATE, may
from jobs import api
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.exceptions import SchedulerError

Outcomes = dict[str, SchedulerError | None]


@dataclass(frozen=True)
class Action:
    """One verb. ``states``: where it makes sense; ``final``: it cannot be undone, so it asks first."""

    verb: str
    label: str
    doing: str
    done: str
    permission: str
    states: frozenset[JobState]
    perform: Callable[[Sequence[str]], Outcomes]
    bulk: bool = False  # may be done to all that match a filter
    final: bool = False

    @property
    def url(self) -> str:
        return reverse("dashboard:act", args=[self.verb])

    @property
    def confirm_url(self) -> str:
        return reverse("dashboard:confirm", args=[self.verb])


def _each(verb: Callable[[str], object]) -> Callable[[Sequence[str]], Outcomes]:
    """Performs a single verb on each id; one that is refused does not keep the rest from happening."""

    def perform(job_ids: Sequence[str]) -> Outcomes:
        outcomes: Outcomes = {}
        for job_id in job_ids:
            try:
                verb(job_id)
                outcomes[job_id] = None
            except reads.UNREACHABLE:
                raise
            except SchedulerError as error:
                outcomes[job_id] = error
        return outcomes

    return perform


ACTIONS: tuple[Action, ...] = (
    Action(
        "resubmit",
        "Resubmit",
        "Resubmitting…",
        "resubmitted",
        OPERATE,
        frozenset({JobState.DEAD, JobState.CANCELLED}),
        api.resubmit_many,
        bulk=True,
    ),
    Action(
        "retry",
        "Retry",
        "Retrying…",
        "sent to run again",
        OPERATE,
        frozenset({JobState.RETRY_WAIT}),
        _each(api.retry),
    ),
    Action(
        "run-now",
        "Run now",
        "Starting…",
        "made ready",
        OPERATE,
        frozenset({JobState.SCHEDULED}),
        _each(api.run_now),
    ),
    Action(
        "cancel",
        "Cancel",
        "Cancelling…",
        "cancelled",
        OPERATE,
        frozenset({JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.LEASED, JobState.RETRY_WAIT}),
        api.cancel_many,
    ),
    Action(
        "discard",
        "Discard",
        "Discarding…",
        "discarded",
        ADMINISTER,
        frozenset({JobState.DEAD, JobState.CANCELLED, JobState.SUCCEEDED, JobState.SKIPPED}),
        api.discard_many,
        bulk=True,
        final=True,
    ),
)
"""In the order in which their buttons stand."""

BY_VERB = {action.verb: action for action in ACTIONS}


def possible(job: Job, user: Any) -> tuple[Action, ...]:
    """What this user may do to this job now, in the order of the buttons."""
    if job.cancel_requested:
        return ()
    return tuple(action for action in ACTIONS if job.state in action.states and may(user, action.permission))


def bulk_actions(user: Any, states: Sequence[str]) -> tuple[Action, ...]:
    """What this user may do to selected rows of a list that is narrowed to these states (none: to all)."""
    shown = {JobState(state) for state in states} or set(JobState)
    return tuple(action for action in ACTIONS if action.states & shown and may(user, action.permission))
