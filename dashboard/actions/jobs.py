"""What people may do to jobs: to one, to those that they selected. Two people pressing at once have one effect: the
engine decides, the second is told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from dashboard import reads
from dashboard.actions.base import Action, Order, Question, Refused, Told
from dashboard.formats import count, plural
from dashboard.links import job_url
from dashboard.overall import UNREACHABLE
from dashboard.permissions import ADMINISTER, may, may_reach
from jobs import api
from jobs.core.job import Job
from jobs.core.states import TERMINAL, JobState
from jobs.exceptions import SchedulerError

Outcomes = dict[str, SchedulerError | None]

SHOWN = 20
"""So many of the jobs are named before an action is done to them."""


@dataclass(frozen=True, kw_only=True)
class JobAction(Action):
    """One verb for jobs. ``states``: where it makes sense; ``each`` does it to many and answers by id.

    ``doing`` and ``done`` are its words while it happens and afterwards.
    """

    states: frozenset[JobState]
    each: Callable[[Sequence[str]], Outcomes]
    doing: str
    done: str

    def pools_of(self, ids: tuple[str, ...]) -> frozenset[str]:
        return frozenset(job.pool for job in reads.jobs_by_id(ids) if job is not None)

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        jobs = [job for job in reads.jobs_by_id(ids) if job is not None and job.state in self.states]
        return Question(
            f"{self.label} {plural(len(jobs), 'job')}?",
            self.says,
            tuple(job.id for job in jobs),
            tuple((job.type, job.id, job_url(job.id)) for job in jobs[:SHOWN]),
            f"Nothing is left to {self.label.lower()}: somebody was faster, or the jobs have moved on.",
        )


def _perform(each: Callable[[Sequence[str]], Outcomes], label: str, done: str, one: str, order: Order) -> Told:
    """Does it to each and says how many went well; ``one`` is the sentence for a single job."""
    if not order.ids:
        raise Refused(f"Nothing was selected to {label.lower()}.")
    outcomes = each(order.ids)
    refused = {id: error for id, error in outcomes.items() if error is not None}
    if len(outcomes) == 1:
        for error in refused.values():
            status = 404 if error.code == "job_not_found" else 409
            raise Refused(f"Not {done}: {error} {error.fix}".strip(), status)
        return Told(one)
    text = f"{plural(len(outcomes) - len(refused), 'job')} {done}."
    if refused:
        causes = sorted({str(error) for error in refused.values()})
        text += f" {count(len(refused))} not: {'; '.join(causes[:3])}"
    return Told(text, ok=not refused)


def _discard(perform: Callable[[Order], Told], order: Order) -> Told:
    """What was discarded has no page any more to go back to."""
    told = perform(order)
    return Told(told.text, told.ok, told.status, goto=reverse("dashboard:dead"))


def _one_by_one(verb: Callable[[str], object]) -> Callable[[Sequence[str]], Outcomes]:
    """Performs a single verb on each id; one that is refused does not keep the rest from happening."""

    def perform(ids: Sequence[str]) -> Outcomes:
        outcomes: Outcomes = {}
        for id in ids:
            try:
                verb(id)
                outcomes[id] = None
            except UNREACHABLE:
                raise
            except SchedulerError as error:
                outcomes[id] = error
        return outcomes

    return perform


def _action(verb: str, label: str, each: Callable[[Sequence[str]], Outcomes], **facts: Any) -> JobAction:
    one = facts.pop("one", f"The job was {facts['done']}.")
    perform: Callable[[Order], Told] = functools.partial(_perform, each, label, facts["done"], one)
    if verb == "discard":
        perform = functools.partial(_discard, perform)
    return JobAction(noun="job", verb=verb, label=label, each=each, perform=perform, panel="jobs", **facts)


ACTIONS: tuple[JobAction, ...] = (
    _action(
        "resubmit",
        "Resubmit",
        api.resubmit_many,
        says="They run again, with attempts counted anew. What they did before stays on record.",
        doing="Resubmitting…",
        done="resubmitted",
        states=frozenset({JobState.DEAD, JobState.CANCELLED}),
        key="r",
    ),
    _action(
        "retry",
        "Retry",
        _one_by_one(api.retry),
        says="They do not wait for the end of their backoff.",
        doing="Retrying…",
        done="sent to run again",
        states=frozenset({JobState.RETRY_WAIT}),
        key="r",
    ),
    _action(
        "run-now",
        "Run now",
        _one_by_one(api.run_now),
        says="They do not wait for their time.",
        doing="Starting…",
        done="made ready",
        states=frozenset({JobState.SCHEDULED}),
        key="r",
    ),
    _action(
        "cancel",
        "Cancel",
        api.cancel_many,
        says="Those that wait end at once; those that run are asked to stop.",
        doing="Cancelling…",
        done="cancelled",
        one="The job is cancelled, or will be as soon as its handler stops.",
        states=frozenset(JobState) - TERMINAL,
        key="c",
    ),
    _action(
        "discard",
        "Discard",
        api.discard_many,
        says="This cannot be undone. With attempts and payload they are removed for good.",
        doing="Discarding…",
        done="discarded",
        states=TERMINAL,
        permission=ADMINISTER,
        final=True,
    ),
)
"""In the order in which their buttons stand."""


BY_VERB = {action.verb: action for action in ACTIONS}


def possible(job: Job, user: Any) -> tuple[JobAction, ...]:
    """What this user may do to this job now, in the order of the buttons."""
    if job.cancel_requested:
        return ()
    allowed = [action for action in ACTIONS if job.state in action.states and may(user, action.permission)]
    return tuple(allowed) if allowed and may_reach(user, frozenset({job.pool})) else ()


def bulk_actions(user: Any, states: Sequence[str]) -> tuple[JobAction, ...]:
    """What this user may do to selected rows of a list that is narrowed to these states (none: to all)."""
    shown = {JobState(state) for state in states} or set(JobState)
    return tuple(action for action in ACTIONS if action.states & shown and may(user, action.permission))
