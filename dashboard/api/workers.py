"""``/workers``: worker hosts and workers, holding a host, and telling them to go."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard.api import answers
from dashboard.api.access import acting, seen
from dashboard.api.bodies import Pause, Reason
from jobs import api

router = Router(tags=["workers"])


@router.get("", auth=seen, response=answers.Workers)
def list_workers(request: HttpRequest) -> Any:
    """All that were alive within the last hour, each host before its workers."""
    return {"items": [worker.as_dict() for worker in api.workers.list()], "next_cursor": None}


@router.post("/{thing:id}/drain", auth=acting("worker.drain"), response=answers.Told)
def drain(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Takes nothing new, finishes what runs however long that takes, and ends."""
    return {**api.workers.drain(id).as_dict(), "command": "drain"}


@router.post("/{thing:id}/stop", auth=acting("worker.stop"), response=answers.Told)
def stop(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Ends as on SIGTERM: what has not finished within the grace goes back."""
    return {**api.workers.stop(id).as_dict(), "command": "stop"}


@router.post("/{thing:id}/pause", auth=acting("worker.pause"), response=answers.Worker)
def pause(request: HttpRequest, id: str, order: Pause | None = None) -> Any:
    """A host takes no new jobs, from about a second on. What runs goes on; the pause ends with the host."""
    order = order or Pause()
    return api.workers.pause(id, reason=order.reason, until=order.span).as_dict()


@router.post("/{thing:id}/resume", auth=acting("worker.resume"), response=answers.Worker)
def resume(request: HttpRequest, id: str, order: Reason | None = None) -> Any:
    """Ends the pause of a host."""
    return api.workers.resume(id).as_dict()


@router.get("/{thing:id}", auth=seen, response=answers.Worker)
def show(request: HttpRequest, id: str) -> Any:
    """One of them, with what it runs."""
    return api.workers.get(id).as_dict()
