"""How the jobs fare that a bulk operation was tried on: what somebody wants to know before the rest follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dashboard import reads, stories
from dashboard.formats import count
from dashboard.overall import Overall
from jobs.api import BulkOperation
from jobs.core.job import Job
from jobs.core.states import JobState

LOOKED_AT = 50
"""So many of them are looked at, each time that the page asks."""

SHOWN = 10

LIVES_ON = frozenset({"resubmit", "run-now", "prioritize"})
"""What leaves a job where its id says, so that it can be watched."""


@dataclass(frozen=True)
class Tried:
    """One of the jobs, with its error or why it waits."""

    job: Job
    why: str


@dataclass(frozen=True)
class Trial:
    """``tried``: the jobs to show, those that died first, then those that failed. ``sentence``: how all that were
    looked at fare."""

    tried: tuple[Tried, ...]
    sentence: str


def trial_of(operation: BulkOperation, overall: Overall) -> Trial | None:
    """None where an operation does not wait after a trial, or where its jobs cannot be watched."""
    if operation.state != "waiting" or not operation.done or operation.request.action not in LIVES_ON:
        return None
    found = [job for job in reads.jobs_by_id(reads.bulk_done(operation.id, LOOKED_AT)) if job is not None]
    worst_first = sorted(found, key=lambda job: (job.state != JobState.DEAD, job.state != JobState.RETRY_WAIT))
    return Trial(
        tuple(Tried(job, stories.beside_its_time(job, overall)) for job in worst_first[:SHOWN]),
        _sentence(found, operation.done),
    )


def _sentence(found: list[Job], done: int) -> str:
    """``1 succeeded, 1 dead.``; ``Of the first 50: 49 succeeded, 1 running.`` where there are more."""
    words = Counter("running" if job.state == JobState.LEASED else job.state.replace("_", " ") for job in found)
    if gone := min(done, LOOKED_AT) - len(found):
        words["gone"] = gone
    told = ", ".join(f"{count(number)} {word}" for word, number in words.most_common())
    return f"Of the first {LOOKED_AT}: {told}." if done > LOOKED_AT else f"{told}."
