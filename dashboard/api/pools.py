"""``/pools``: what waits and runs, the figures that an autoscaler needs, sizing and holding."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard.actions.pausing import WAIT_SECONDS
from dashboard.api import answers
from dashboard.api.access import acting, seen
from dashboard.api.bodies import Limit, Pause, Reason, Scale
from jobs import api
from jobs.api import Pool

router = Router(tags=["pools"])


def document(pool: Pool) -> dict[str, Any]:
    """The JSON of a pool, and its load: (ready + running) ÷ slots, without parked jobs; null without slots."""
    return {**pool.as_dict(), "load": pool.load}


@router.get("", auth=seen, response=answers.Pools)
def list_pools(request: HttpRequest) -> Any:
    """All pools, by name. Costs the same whatever they hold."""
    return {"items": [document(pool) for pool in api.pools.list()], "next_cursor": None}


@router.get("/{name}", auth=seen, response=answers.Pool)
def show(request: HttpRequest, name: str) -> Any:
    """One pool. An external autoscaler goes by ``load`` (aim at 1, or below) or ``oldest_ready_age_seconds``."""
    return document(api.pools.get(name))


@router.post("/{name}/scale", auth=acting("pool.scale"), response=answers.Pool)
def scale(request: HttpRequest, name: str, order: Scale) -> Any:
    """Sets the slots per worker process; running workers follow within a second."""
    return document(api.pools.scale(name, order.slots))


@router.post("/{name}/limit", auth=acting("pool.limit"), response=answers.Pool)
def limit(request: HttpRequest, name: str, order: Limit) -> Any:
    """Limits what runs at once over all hosts, or what may wait."""
    return document(api.pools.limit(name, **order.limits))


@router.post("/{name}/pause", auth=acting("pool.pause"), response=answers.Pool)
def pause(request: HttpRequest, name: str, order: Pause | None = None) -> Any:
    """Starts nothing more of the pool. What runs goes on; the pause survives every restart."""
    order = order or Pause()
    return document(api.pools.pause(name, reason=order.reason, until=order.span, wait=WAIT_SECONDS))


@router.post("/{name}/resume", auth=acting("pool.resume"), response=answers.Pool)
def resume(request: HttpRequest, name: str, order: Reason | None = None) -> Any:
    """Ends the pause."""
    return document(api.pools.resume(name))
