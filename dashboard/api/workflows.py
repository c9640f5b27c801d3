"""``/workflows``: runs, what is stored, and steering a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from dashboard.actions.pausing import WAIT_SECONDS
from dashboard.api import answers, paging
from dashboard.api.access import acting, seen
from dashboard.api.bodies import Again, Decision, Reason, Signal, Skip, Start
from dashboard.api.errors import RequestInvalid
from dashboard.api.service import caller, created
from dashboard.api.words import RunWords
from jobs import api
from jobs.core.workflow import RunState

router = Router(tags=["workflows"])

STATES = tuple(state.value for state in RunState)
LAST_DAYS = 30
"""Of so many days the runs are summed up."""


@router.get("", auth=seen, response=answers.Runs)
def list_runs(request: HttpRequest, words: Query[RunWords]) -> Any:
    """Runs, newest first. A page that is narrowed to a state may be short, or empty, and not be the last."""
    if words.state and words.state not in STATES:
        raise RequestInvalid("This is no state of a run", fix=f"Send one of {', '.join(STATES)}.")

    def read(cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        found = api.workflows.list(name=words.name or None, state=words.state or None, cursor=cursor, limit=limit)
        return [api.workflows.shown_facts(run) for run in found.items], found.next_cursor

    return paging.page(read, words.cursor, words.size)


@router.post("", auth=acting("workflow.start"), response={201: answers.Run})
def start(request: HttpRequest, order: Start) -> Any:
    """Starts a run of a stored workflow, or of one that comes with the request. The same id again starts nothing."""
    if (order.name is None) == (order.workflow is None):
        raise RequestInvalid("Nothing says what is to be started", fix="Send name, or workflow.")
    what: Any = order.name if order.workflow is None else order.workflow
    caller(request).refuse_closed(lambda: api.reach.of_workflow(what))
    run = api.workflows.start(
        what,
        order.payload,
        id=order.id,
        started_by=caller(request).name,
        allow_unknown=order.allow_unknown,
    )
    return created(api.workflows.shown_document(run.id))


@router.get("/definitions", auth=seen, response=answers.Definitions)
def definitions(request: HttpRequest) -> Any:
    """Workflows that are stored or have run lately, with how their runs went in the last 30 days."""
    found = api.workflows.definitions(days=LAST_DAYS)
    return {"items": [one.as_dict() for one in found], "next_cursor": None}


@router.get("/{run}", auth=seen, response=answers.Run)
def show(request: HttpRequest, run: str) -> Any:
    """One run with all its nodes."""
    return api.workflows.shown_document(run)


@router.post("/{run}/cancel", auth=acting("run.cancel"), response=answers.Run)
def cancel(request: HttpRequest, run: str, order: Reason | None = None) -> Any:
    """Stops a run: what waits never starts, what runs is asked to stop, nodes marked always run."""
    return _after(run, api.workflows.cancel, reason=order.reason if order else "")


@router.post("/{run}/pause", auth=acting("run.pause"), response=answers.Run)
def pause(request: HttpRequest, run: str, order: Reason | None = None) -> Any:
    """Starts nothing more of the run; what runs goes on."""
    return _after(run, api.workflows.pause, reason=order.reason if order else "", wait=WAIT_SECONDS)


@router.post("/{run}/resume", auth=acting("run.resume"), response=answers.Run)
def resume(request: HttpRequest, run: str, order: Reason | None = None) -> Any:
    """Ends the pause."""
    return _after(run, api.workflows.resume)


@router.post("/{run}/retry", auth=acting("run.retry"), response=answers.RetriedRun)
def retry(request: HttpRequest, run: str, order: Again | None = None) -> Any:
    """Runs again what failed and what was skipped because of it, or a node and all that comes after it."""
    node = order.node if order else None
    plan = api.workflows.retry_plan(run, node)
    listed = {"again": [*plan.again], "waiting": [*plan.waiting], "dropped": [*plan.dropped]}
    return {**_after(run, api.workflows.retry, node), **listed}


@router.post("/{run}/signal", auth=acting("run.signal"), response=answers.SignalledRun)
def signal(request: HttpRequest, run: str, order: Signal) -> Any:
    """Tells a run that something has happened for which nodes of it wait, now or later."""
    ended = api.workflows.signal(run, order.name, order.payload)
    return {**api.workflows.shown_document(run), "ended": ended}


@router.post("/{run}/skip", auth=acting("run.skip"), response=answers.Run)
def skip(request: HttpRequest, run: str, order: Skip) -> Any:
    """Counts a node as succeeded without running it: what comes after it goes on."""
    return _after(run, api.workflows.skip, order.node, result=order.result, reason=order.reason)


@router.post("/{run}/approve", auth=acting("run.approve"), response=answers.Run)
def approve(request: HttpRequest, run: str, order: Decision) -> Any:
    """Says yes to a node that waits for approval. It takes the permission that the node names, else jobs.operate."""
    return _decided(request, run, order, api.workflows.approve)


@router.post("/{run}/reject", auth=acting("run.reject"), response=answers.Run)
def reject(request: HttpRequest, run: str, order: Decision) -> Any:
    """Says no to it: the node fails."""
    return _decided(request, run, order, api.workflows.reject)


def _decided(request: HttpRequest, run: str, order: Decision, decide: Callable[..., Any]) -> dict[str, Any]:
    caller(request).refuse_without(api.workflows.permission_to_decide(run, order.node))
    return _after(run, decide, order.node, comment=order.comment)


def _after(run: str, verb: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
    """The run as it stands when that was done."""
    verb(run, *arguments, **options)
    return api.workflows.shown_document(run)
