"""``/jobs``: listing, enqueueing, one job, and what people do to it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from ninja import Query, Router

from dashboard.api import answers, paging
from dashboard.api.access import Token, acting, seen
from dashboard.api.bodies import Enqueue, Reason, Resubmit
from dashboard.api.errors import RequestInvalid
from dashboard.api.service import caller, created
from dashboard.api.tally import note_enqueue
from dashboard.api.words import JobWords, selection
from dashboard.permissions import ADMINISTER, ENQUEUE, OPERATE
from jobs import api
from jobs.core.job import Job

router = Router(tags=["jobs"])

LOOKED_AT = 5_000
"""Jobs that one page looks at, however many of them match."""


def document(job: Job) -> dict[str, Any]:
    """The JSON of a job as people may see it."""
    return api.shown(job).as_dict()


def page(words: Any, chosen: api.JobFilter) -> dict[str, Any]:
    """One page of the jobs that match: at most ``LOOKED_AT`` are looked at for it."""
    left, left_at = LOOKED_AT, dict[str | None, int]()

    def read(cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        nonlocal left
        left = left_at.setdefault(cursor, left)  # where less is read again, no more is looked at
        found = api.list_jobs(chosen, cursor=cursor, limit=limit, look_at=max(left, 1))
        left -= found.scanned
        return [document(job) for job in found.items], found.next_cursor

    return paging.page(read, words.cursor, words.size)


@router.get("", auth=seen, response=answers.Jobs)
def list_jobs(request: HttpRequest, words: Query[JobWords]) -> Any:
    """Jobs: live ones in the order in which they run, then ended ones, newest first.

    A page looks at 5,000 jobs at most. Where filters leave most of them out it may be short, or empty, and not be the
    last: go on with its cursor until there is none. So it may be where jobs are large: a page ends at 4 MB.
    """
    return page(words, selection(request))


@router.post("", auth=Token(ENQUEUE), response={201: answers.Handle | answers.Handles, 200: answers.Handle})
def enqueue(request: HttpRequest, order: Enqueue) -> Any:
    """Enqueues a job, or one for each of ``payloads``. 200 and not 201: its unique key has a live job, which is it.

    With ``on_duplicate`` ``replace``, which cancels the job that waits under the key, it takes jobs.operate as well.
    """
    if order.payload is not None and order.payloads is not None:
        raise RequestInvalid("payload and payloads exclude each other", fix="Send one of them.")
    if order.id in (".", ".."):
        raise RequestInvalid(f"id: {order.id} could not be asked for: clients take it for a step in a path")
    options, who, replaces = order.options, caller(request), order.on_duplicate == "replace"
    if replaces:  # it cancels the job that waits under its unique key
        who.refuse_without(OPERATE)
    who.refuse_closed(lambda: api.reach.of_enqueue(order.type, options.get("pool"), replaces=replaces))
    payloads = [order.payload or {}] if order.payloads is None else order.payloads
    handles = api.enqueue_many(order.type, payloads, **options)
    note_enqueue(who, order.type, handles, replaces=replaces)
    if order.payloads is None:
        [handle] = handles
        return JsonResponse(handle.as_dict(), status=200 if handle.existing else 201)
    return created({"items": [handle.as_dict() for handle in handles], "next_cursor": None})


@router.post("/{thing:id}/cancel", auth=acting("job.cancel"), response=answers.Job)
def cancel(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Ends a job that waits; asks one that runs to stop."""
    return document(api.cancel(id))


@router.post("/{thing:id}/retry", auth=acting("job.retry"), response=answers.Job)
def retry(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Runs a job now that waits for its backoff or its time; resubmits a dead or cancelled one."""
    return document(api.retry(id))


@router.post("/{thing:id}/run-now", auth=acting("job.run-now"), response=answers.Job)
def run_now(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Runs a job now that waits for its time or its backoff."""
    return document(api.run_now(id))


@router.post("/{thing:id}/resubmit", auth=acting("job.resubmit"), response=answers.Job)
def resubmit(request: HttpRequest, id: str, order: Resubmit | None = None) -> Any:
    """Makes a dead or cancelled job live again. With another payload it takes jobs.administer.

    What is sent back masked, as it was shown, stays what it was.
    """
    if order is None or order.payload is None:
        return document(api.resubmit(id))
    caller(request).refuse_without(ADMINISTER)
    return document(api.resubmit(id, payload=api.restored(order.payload, api.get_job(id).payload)))


@router.get("/{thing:id}/logs", auth=seen, response=answers.Logs)
def logs(request: HttpRequest, id: str) -> Any:
    """What its attempts have logged through ``ctx.log``."""
    job = api.get_job(id)
    return api.shown_log(job, api.job_logs(job)).as_dict()


@router.get("/{thing:id}", auth=seen, response=answers.JobWithReason)
def show(request: HttpRequest, id: str) -> Any:
    """One job, and why it does not run."""
    found, reason = document(api.get_job(id)), api.explain(id)
    return {**found, "reason": reason.as_dict() if reason else None}


@router.delete("/{thing:id}", auth=acting("job.discard"), response=answers.Deleted)
def discard(request: HttpRequest, id: str) -> Any:
    """Removes an ended job for good, with attempts and payload."""
    api.discard(id)
    return {"id": id, "deleted": True}
