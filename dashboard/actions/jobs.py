"""What people may do to jobs: to one, to those that they selected. Two people pressing at once have one effect: the
engine decides, the second is told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import Action, Order, Question, Refused, Told, key_for
from dashboard.actions.steering import MoveForm, PriorityForm, with_target
from dashboard.formats import count, plural
from dashboard.links import bulk_url, job_url
from dashboard.overall import UNREACHABLE
from dashboard.permissions import ADMINISTER, may, may_reach
from jobs import api
from jobs.api.reach import Reach
from jobs.core.bulk import WAITING
from jobs.core.job import Job
from jobs.core.states import TERMINAL, JobState
from jobs.exceptions import SchedulerError

Outcomes = dict[str, SchedulerError | None]

MOVED_HERE = 100
"""So many are moved while a person waits; more are left to worker hosts."""

MOVED_WITHIN = 1.0
"""Seconds that a person waits for a part that a worker host has taken."""

SHOWN = 20
"""So many of the jobs are named before an action is done to them."""


@dataclass(frozen=True, kw_only=True)
class JobAction(Action):
    """One verb for jobs. ``states``: where it makes sense; ``doing`` and ``done`` are its words while it happens and
    afterwards.
    """

    states: frozenset[JobState]
    doing: str
    done: str
    mends: bool = False
    """It gets the job going, which is what people open its page for: its button is the loud one there."""
    of: str = ""
    """Stands between its label and what it is done to: ``Set priority of 4 jobs``."""

    def pools_of(self, ids: tuple[str, ...]) -> Reach:
        found = [job for job in reads.jobs_by_id(ids) if job is not None]
        return api.reach.together(api.reach.of_job(job.type, job.pool) for job in found)

    def reach(self, ids: tuple[str, ...], given: QueryDict) -> Reach:
        return with_target(self.pools_of(ids), given)

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        jobs = [job for job in reads.jobs_by_id(ids) if job is not None and job.state in self.states]
        return Question(
            f"{self.label}{self.of} {plural(len(jobs), 'job')}?",
            self.says,
            tuple(job.id for job in jobs),
            tuple((job.type, job.id, job_url(job.id)) for job in jobs[:SHOWN]),
            f"Nothing is left to {self.label.lower()}: somebody was faster, or the jobs have moved on.",
            hidden=(key_for(given),) if self.asks else (),
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


def _chosen(order: Order, states: frozenset[JobState], done: str) -> list[str]:
    """Those of the jobs to which it can be done."""
    found = [job for job in reads.jobs_by_id(order.ids) if job is not None]
    fitting = [job.id for job in found if job.state in states]
    if not fitting:
        why = f"{found[0].id} is {found[0].state}" if found else "there is no such job (any more)"
        raise Refused(f"Not {done}: {why}.", 409 if found else 404)
    return fitting


def _discard(order: Order) -> Told:
    """What is discarded goes after a while, as an operation that can be called off until then."""
    operation = api.bulk.start_on("discard", _chosen(order, TERMINAL, "discarded"), id=order.key)
    return Told(
        f"{plural(operation.total, 'job')} will be discarded. Until then it can be undone.",
        goto=bulk_url(operation.id),
    )


def _move(order: Order) -> Told:
    chosen, to = _chosen(order, frozenset(WAITING), "moved"), order.values["to"]
    if len(chosen) == 1 and (why := reads.refusal_of_move(chosen[0], to)):
        raise Refused(f"Not moved: {why} {why.fix}".strip(), 409)
    operation = api.bulk.start_on("move", chosen, id=order.key, pool=to)
    if operation.total <= MOVED_HERE:
        operation = api.bulk.finish(operation.id, within=MOVED_WITHIN)
    if len(chosen) == 1 and operation.done:
        [job] = reads.jobs_by_id(chosen)
        return Told(f"The job goes on in pool {to}.", goto=job_url(successor_of(job) or chosen[0]))
    return Told(f"A move to pool {to} has been asked for.", goto=bulk_url(operation.id))


def _prioritize(order: Order) -> Told:
    priority = order.values["priority"]
    each = functools.partial(api.prioritize_many, priority=priority)
    return _perform(each, "Set priority", f"given priority {priority}", f"The job has priority {priority}.", order)


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
    return JobAction(**{"noun": "job", "verb": verb, "label": label, "perform": perform, "panel": "jobs", **facts})


ACTIONS: tuple[JobAction, ...] = (
    _action(
        "resubmit",
        "Resubmit",
        api.resubmit_many,
        says="They run again, with attempts counted anew. What they did before stays on record.",
        doing="Resubmitting…",
        done="resubmitted",
        states=frozenset({JobState.DEAD, JobState.CANCELLED}),
        mends=True,
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
        mends=True,
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
        mends=True,
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
    JobAction(
        noun="job",
        verb="prioritize",
        label="Set priority",
        of=" of",
        says="Higher runs first. Each keeps its place by arrival among those of its new priority.",
        perform=_prioritize,
        panel="jobs",
        form=PriorityForm,
        doing="Changing…",
        done="given another priority",
        states=frozenset(WAITING),
    ),
    JobAction(
        noun="job",
        verb="move",
        label="Move",
        says="They end here as cancelled and go on in the other pool, each under a new id, with attempts counted anew. "
        "A job that holds a unique key, or is a node of a workflow, stays.",
        perform=_move,
        panel="jobs",
        form=MoveForm,
        doing="Moving…",
        done="moved",
        states=frozenset(WAITING),
    ),
    JobAction(
        noun="job",
        verb="discard",
        label="Discard",
        says=f"With attempts and payload they are removed, {api.bulk.UNDO_SECONDS:.0f} seconds after you say so. Until "
        "then it can be undone; after that they are gone for good.",
        perform=_discard,
        panel="jobs",
        doing="Discarding…",
        done="discarded",
        states=TERMINAL,
        permission=ADMINISTER,
        final=True,
    ),
)
"""In the order in which their buttons stand."""


BY_VERB = {action.verb: action for action in ACTIONS}


def successor_of(job: Job | None) -> str:
    """The id under which a job that was moved goes on; empty for any other."""
    return job.moved_to if job is not None and job.state == JobState.CANCELLED else ""


def possible(job: Job, user: Any) -> tuple[JobAction, ...]:
    """What this user may do to this job now, in the order of the buttons."""
    if job.cancel_requested:
        return ()
    allowed = [action for action in ACTIONS if job.state in action.states and may(user, action.permission)]
    return tuple(allowed) if allowed and may_reach(user, api.reach.of_job(job.type, job.pool)) else ()


def bulk_actions(user: Any, states: Sequence[str]) -> tuple[JobAction, ...]:
    """What this user may do to selected rows of a list that is narrowed to these states (none: to all)."""
    shown = {JobState(state) for state in states} or set(JobState)
    return tuple(action for action in ACTIONS if action.states & shown and may(user, action.permission))
