"""What can be done to all jobs that match a filter, and in which states."""

from __future__ import annotations

from typing import Literal

from jobs.core.states import TERMINAL, JobState

BulkAction = Literal["resubmit", "discard", "cancel", "run-now", "move", "prioritize"]

LIVE = (JobState.BLOCKED, JobState.SCHEDULED, JobState.RETRY_WAIT, JobState.READY, JobState.LEASED)
"""From where jobs come to where they go: one that moves on while the list is walked is met there."""

WAITING = (JobState.SCHEDULED, JobState.RETRY_WAIT, JobState.READY)
"""Jobs that wait for nothing but a time or a worker, in the same order."""

ALLOWED: dict[BulkAction, tuple[JobState, ...]] = {
    "resubmit": (JobState.DEAD, JobState.CANCELLED),
    "discard": tuple(state for state in JobState if state in TERMINAL),
    "cancel": LIVE,
    "run-now": (JobState.SCHEDULED, JobState.RETRY_WAIT),
    "move": WAITING,
    "prioritize": WAITING,
}
"""In which states an action makes sense."""

USUAL: dict[BulkAction, tuple[JobState, ...]] = {
    "resubmit": (JobState.DEAD,),
    "discard": (JobState.DEAD,),
    "cancel": LIVE,
    "run-now": (JobState.SCHEDULED, JobState.RETRY_WAIT),
    "move": WAITING,
    "prioritize": WAITING,
}
"""Which are meant where a filter names none."""
