"""Looking at jobs, and deciding over single ones or lists of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.waiting import Pauses
from jobs.core import options
from jobs.core.job import Job
from jobs.core.payload import encode_any
from jobs.core.states import JobState
from jobs.engine import SCAN_LIMIT, JobFilter, Page, Reason, get_engine
from jobs.exceptions import JobTimeout, OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState
from jobs.registry import registry
from jobs.runtime.relaying import Relay

EVERY_JOB = JobFilter()

NAMED = 20
"""As many jobs are named in one entry of the audit log."""


def get_job(id: str) -> Job:
    """The job as it is now. JobNotFound."""
    return get_engine().jobs.get(id)


def get_jobs(ids: Iterable[str]) -> list[Job | None]:
    """Several jobs in the order of their ids; None for those that are not there."""
    return get_engine().jobs.get_many(ids)


def explain(id: str) -> Reason | None:
    """Why the job does not run: one true answer, from what decides. None where it runs or has ended. JobNotFound."""
    return get_engine().explain.job(id)


def list_jobs(
    filter: JobFilter = EVERY_JOB, *, cursor: str | None = None, limit: int = 50, look_at: int = SCAN_LIMIT
) -> Page:
    """One page of the jobs that match. ``Page.next_cursor`` leads to the next one; ``limit`` is cut at 1,000.

    ``look_at``: where a filter leaves most jobs out, a page ends after so many, full or not. ``Page.scanned`` says
    after how many.
    """
    return get_engine().jobs.page(filter, cursor=cursor, limit=limit, look_at=look_at)


def cancel(id: str) -> Job:
    """Ends a waiting job as ``cancelled``; asks a running one to stop. JobNotFound, WrongState if it has ended."""
    job = get_engine().jobs.cancel(id)
    _tell_run(job)
    audit.record("job.cancel", id, after=_state(job))
    return job


def cancel_many(ids: Iterable[str]) -> dict[str, SchedulerError | None]:
    """Cancels each; answers what went wrong by id, None where nothing did. One entry in the audit log."""
    return recorded("job.cancel", ids, cancel_each)


def cancel_each(ids: Iterable[str]) -> dict[str, SchedulerError | None]:
    """The same without an entry, for those who make one for the whole."""
    wanted = list(ids)
    outcomes = {id: _problem_of(lambda id=id: get_engine().jobs.cancel(id)) for id in wanted}  # type: ignore[misc]
    Relay(get_engine()).tell_of(wanted)
    return outcomes


def retry(id: str) -> Job:
    """Makes a job run now, whatever it waits for: its time, its backoff, or somebody to resubmit it.

    ``scheduled`` and ``retry_wait`` become ready; ``dead`` and ``cancelled`` are resubmitted. JobNotFound; WrongState
    in any other state.
    """
    job = get_job(id)
    if job.state in (JobState.SCHEDULED, JobState.RETRY_WAIT):
        return run_now(id)
    if job.state in (JobState.DEAD, JobState.CANCELLED):
        return resubmit(id)
    raise WrongState(
        f"Job {id} is {job.state.value}: there is nothing to retry",
        state=job.state.value,
        fix="Only scheduled, retry_wait, dead and cancelled jobs can be retried.",
    )


def run_now(id: str) -> Job:
    """Makes a ``scheduled`` or ``retry_wait`` job ready. JobNotFound, WrongState."""
    job = get_engine().jobs.run_now(id)
    audit.record("job.run_now", id, after=_state(job))
    return job


def prioritize(id: str, priority: int) -> Job:
    """Gives a waiting job another priority; it keeps its place by arrival. JobNotFound, WrongState, OptionInvalid."""
    before = get_job(id)
    problem = prioritize_each([id], priority)[id]
    if problem is not None:
        raise problem
    audit.record("job.prioritize", id, before={"priority": before.priority}, after={"priority": priority})
    return get_job(id)


def prioritize_many(ids: Iterable[str], priority: int) -> dict[str, SchedulerError | None]:
    """Gives each the priority; answers what went wrong by id, None where nothing did. One entry in the audit log."""
    return recorded("job.prioritize", ids, lambda ids: prioritize_each(ids, priority), priority=priority)


def prioritize_each(ids: Iterable[str], priority: int) -> dict[str, SchedulerError | None]:
    """The same without an entry, for those who make one for the whole."""
    return get_engine().jobs.prioritize_many(ids, options.check_priority("priority", priority))


def resubmit(id: str, payload: Mapping[str, Any] | None = None) -> Job:
    """Makes a ``dead`` or ``cancelled`` job live again: attempts reset, history kept, with a new payload if given.

    JobNotFound, WrongState, PayloadInvalid, PayloadTooLarge; DuplicateJob if another live job has its unique key now.
    """
    visible = get_engine().visible
    before = None if payload is None else get_job(id)
    job = _resubmit(id, payload)
    _tell_run(job)
    was = {} if before is None else {"payload": visible.job(before).payload}
    changed = {} if payload is None else {"payload": visible.job(job).payload}
    audit.record("job.resubmit", id, before=was or None, after=_state(job) | changed)
    return job


def resubmit_many(ids: Iterable[str], payload: Mapping[str, Any] | None = None) -> dict[str, SchedulerError | None]:
    """Resubmits each; answers what went wrong by id, None where nothing did. One entry in the audit log."""
    return recorded("job.resubmit", ids, lambda ids: resubmit_each(ids, payload))


def resubmit_each(ids: Iterable[str], payload: Mapping[str, Any] | None = None) -> dict[str, SchedulerError | None]:
    """The same without an entry, for those who make one for the whole."""
    wanted = list(ids)
    if payload is None:
        outcomes = get_engine().jobs.resubmit_many(wanted)
    else:
        outcomes = {id: _problem_of(lambda id=id: _resubmit(id, payload)) for id in wanted}  # type: ignore[misc]
    Relay(get_engine()).tell_of(wanted)
    return outcomes


def discard(id: str) -> None:
    """Removes an ended job for good. JobNotFound; WrongState while it is live."""
    get_engine().jobs.discard(id)
    audit.record("job.discard", id)


def discard_many(ids: Iterable[str]) -> dict[str, SchedulerError | None]:
    """Removes each; answers what went wrong by id, None where nothing did. One entry in the audit log."""
    return recorded("job.discard", ids, discard_each)


def discard_each(ids: Iterable[str]) -> dict[str, SchedulerError | None]:
    """The same without an entry, for those who make one for the whole."""
    return get_engine().jobs.discard_many(ids)


def recorded(
    action: str,
    ids: Iterable[str],
    act: Callable[[Iterable[str]], dict[str, SchedulerError | None]],
    **facts: Any,
) -> dict[str, SchedulerError | None]:
    """Acts on the jobs and writes one entry about those with whom it went well; ``facts``: what else it says."""
    outcomes = act(ids)
    if done := [id for id, problem in outcomes.items() if problem is None]:
        target = done[0] if len(done) == 1 else f"{len(done):,} jobs"
        audit.record(action, target, after={"done": len(done), "jobs": done[:NAMED], **facts})
    return outcomes


def wait(id: str, timeout: float | timedelta | None = None) -> Job:
    """Waits until the job has ended and answers it, however it ended.

    JobNotFound; JobTimeout, which is a TimeoutError, after ``timeout`` seconds. The job goes on: wait again, or cancel.
    """
    pauses, sleeper = Pauses(timeout), threading.Event()
    while not (job := get_job(id)).is_terminal:
        sleeper.wait(pauses.next_or(partial(_not_ended, job)))
    return job


async def await_(id: str, timeout: float | timedelta | None = None) -> Job:  # noqa: ASYNC109 - the arguments of its twin
    """The async twin of ``wait`` (whose name with the prefix ``a`` is a word of Python's own)."""
    pauses = Pauses(timeout)
    while not (job := await aget_job(id)).is_terminal:  # noqa: ASYNC110 - what is awaited happens in other processes
        await asyncio.sleep(pauses.next_or(partial(_not_ended, job)))
    return job


def encode_for(type_name: str, payload: Mapping[str, Any]) -> bytes:
    """The payload's bytes, checked against the type's signature where this process has registered it."""
    if type_name in registry:
        return registry.get(type_name).encode(payload)
    return encode_any(type_name, payload)


def _not_ended(job: Job, timeout: float) -> JobTimeout:
    return JobTimeout(
        f"Job {job.id} has not ended within {timeout:g} seconds: it is {job.state.value}",
        fix="Wait longer, or look at the job: it goes on.",
    )


def _tell_run(job: Job) -> None:
    """The run of a node learns at once what was done with it."""
    if job.workflow_run is not None:
        Relay(get_engine()).tell_of([job.id])


def _resubmit(id: str, payload: Mapping[str, Any] | None) -> Job:
    if payload is None:
        return get_engine().jobs.resubmit(id)
    return get_engine().jobs.resubmit(id, encode_for(get_job(id).type, payload))


def _problem_of(act: Callable[[], object]) -> SchedulerError | None:
    """What it was refused for. A store that is away is nobody's refusal."""
    try:
        act()
    except (StoreUnavailable, OutcomeUnknown):
        raise
    except SchedulerError as error:
        return error
    return None


def _state(job: Job) -> dict[str, Any]:
    return {"type": job.type, "pool": job.pool, "state": job.state.value}


aget_job = twin(get_job)
aexplain = twin(explain)
aget_jobs = twin(get_jobs)
alist_jobs = twin(list_jobs)
aprioritize = twin(prioritize, uses_database=True)
acancel = twin(cancel, uses_database=True)
acancel_many = twin(cancel_many, uses_database=True)
aretry = twin(retry, uses_database=True)
arun_now = twin(run_now, uses_database=True)
aresubmit = twin(resubmit, uses_database=True)
aresubmit_many = twin(resubmit_many, uses_database=True)
adiscard = twin(discard, uses_database=True)
adiscard_many = twin(discard_many, uses_database=True)
