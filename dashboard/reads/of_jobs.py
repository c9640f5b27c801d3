"""Jobs and what was done to many of them, with secrets masked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec
from django.db import DatabaseError

from dashboard.reads.whole import BUDGET_SECONDS, asking, last_known
from jobs import api
from jobs.api import BulkOperation, ErrorGroup, JobFilter, LogPage, Page, Reason
from jobs.api.audit import AuditFilter, AuditRecord
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.exceptions import JobNotFound, WrongState

LOOKS_AT = 1_000
"""A list looks at so many jobs for those that a filter wants before it answers, and offers to look further: with any
backlog it answers at once."""

FIRST = 50
MOST_BYTES = 8 * 1_048_576
"""Of payloads and results of one page, about: a hundred readers at once must not fill the memory of a web process."""


class Groups(NamedTuple):
    """Errors that jobs died of, the commonest first. ``is_whole``: of all jobs that match; else of the newest."""

    groups: list[ErrorGroup]
    is_whole: bool


def _shown(job: Job) -> Job:
    """The job as everybody may see it: its secrets are masked before it reaches a page or a download."""
    return api.shown(job)


def jobs(selection: JobFilter, cursor: str, limit: int) -> Page:
    """One page of the list; shorter than asked for where jobs are large. OptionInvalid for a cursor that is not one of
    ours.
    """
    with asking():
        page = _within_bytes(selection, cursor, limit, LOOKS_AT)
    return msgspec.structs.replace(page, items=[_shown(job) for job in page.items])


def _within_bytes(selection: JobFilter, cursor: str, limit: int, look_at: int) -> Page:
    """The first few tell how large jobs are: no more of them are read than fit."""
    page = api.list_jobs(selection, cursor=cursor or None, limit=min(limit, FIRST), look_at=look_at)
    left = look_at - page.scanned
    if not page.next_cursor or len(page.items) < FIRST or left <= 0:
        return page
    each = sum(len(msgspec.json.encode((job.payload, job.result))) for job in page.items) // len(page.items)
    fitting = min(limit - FIRST, MOST_BYTES // max(1, each) - FIRST)
    if fitting <= 0:
        return page
    more = api.list_jobs(selection, cursor=page.next_cursor, limit=fitting, look_at=left)
    return Page(items=page.items + more.items, next_cursor=more.next_cursor, scanned=page.scanned + more.scanned)


def job(job_id: str) -> Job:
    """One job with its attempts, or JobNotFound."""
    with asking():
        return _shown(api.get_job(job_id))


def jobs_by_id(job_ids: Sequence[str]) -> list[Job | None]:
    """Each of the jobs, None where there is none."""
    with asking():
        return [_shown(job) if job else None for job in api.get_jobs(job_ids)]


def job_log(job_id: str) -> LogPage:
    """What the attempts of a job have logged, or JobNotFound."""
    with asking():
        stored = api.get_job(job_id)
        return api.shown_log(stored, api.job_logs(stored))


def revealed(job_id: str, *, reason: str) -> tuple[Job, LogPage]:
    """The job and its log with nothing masked, and an entry in the audit log; or JobNotFound."""
    with asking():
        job = api.reveal(job_id, reason=reason)
        return job, api.job_logs(job)


def why(job: Job) -> Reason | None:
    """Why a job does not run, from what decides; None where it runs, has ended, or is gone by now."""
    if job.is_terminal or job.is_running:
        return None
    with asking(), suppress(JobNotFound):
        return api.explain(job.id)
    return None


def done_to(job_id: str, limit: int) -> Sequence[AuditRecord] | None:
    """What people did to a job, newest first; None where the audit log cannot be read."""
    try:
        return api.audit.list(AuditFilter(target=job_id, action="job."), limit=limit).items
    except DatabaseError:
        return None


def error_groups(selection: JobFilter, sample: int) -> Groups:
    """The newest ``sample`` dead jobs that match, by what they died of."""
    with asking():
        found = _newest_dead(selection, sample)
        return Groups(api.group_errors(found.items), is_whole=not found.next_cursor)


def error_groups_from(page: Page, selection: JobFilter, sample: int) -> Groups:
    """The same, where the first page of these jobs has been read: it is not looked through again."""
    jobs, left, older = page.items[:sample], LOOKS_AT - page.scanned, page.next_cursor
    with asking():
        if older and len(jobs) < sample and left > 0:
            more = _within_bytes(selection, older, sample - len(jobs), left)
            jobs, older = jobs + more.items, more.next_cursor
        return Groups(api.group_errors(jobs), is_whole=not older and len(page.items) <= sample)


def dead_sample(selection: JobFilter, sample: int) -> list[Job]:
    """The newest dead jobs that match, as far as they are among those that are looked at."""
    with asking():
        return [_shown(job) for job in _newest_dead(selection, sample).items]


def _newest_dead(selection: JobFilter, sample: int) -> Page:
    dead = msgspec.structs.replace(selection, states=(JobState.DEAD,))
    return _within_bytes(dead, "", sample, LOOKS_AT)


def count_within(selection: JobFilter, seconds: float) -> tuple[int, bool]:
    """How many match, as far as that can be found out in this time, and whether these are all."""
    last_known.refuse_while_away()
    with api.budget(BUDGET_SECONDS + seconds):
        return api.matching.count_within(selection, seconds)


def refusal_of_move(job_id: str, pool: str) -> WrongState | None:
    """Why this job cannot be moved to that pool, if that shows before it is asked for. JobNotFound."""
    with asking():
        return api.bulk.refusal_of_move(api.get_job(job_id), pool)


def bulk_operations() -> list[BulkOperation]:
    """The operations that are kept, newest first."""
    with asking():
        return api.bulk.newest()


def bulk_operation(id: str) -> BulkOperation:
    """One operation, or BulkNotFound."""
    with asking():
        return api.bulk.get(id)


def bulk_done(id: str, limit: int) -> list[str]:
    """The first jobs that it was done to, by id. No further than where it waits: behind that may be thousands."""
    with asking():
        handled = takewhile(lambda each: each[1] != "waits", api.bulk.results(id))
        return list(islice((job for job, what in handled if what == "done"), limit))


def bulk_refusals(id: str, limit: int) -> dict[str, str]:
    """Why it was not done, by job."""
    with asking():
        return {job: api.redaction.shown_text(why) for job, why in api.bulk.refusals(id, limit).items()}
