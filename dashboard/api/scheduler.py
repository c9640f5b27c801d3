"""``/scheduler``: the whole system at once; ``/stats``: its figures."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from dashboard.actions.pausing import WAIT_SECONDS
from dashboard.api import answers
from dashboard.api.access import acting, seen
from dashboard.api.bodies import Pause, Reason
from dashboard.api.pools import document
from dashboard.api.words import StatsWords
from jobs import api
from jobs.core.job import iso

router = Router(tags=["scheduler"])
stats = Router(tags=["stats"])


@router.get("", auth=seen, response=answers.Status)
def status(request: HttpRequest) -> Any:
    """How it all stands: who holds it, hosts, workers, jobs by state, pools."""
    return api.scheduler.status()


@router.post("/pause", auth=acting("scheduler.pause"), response=answers.Status)
def pause(request: HttpRequest, order: Pause | None = None) -> Any:
    """Starts nothing more, anywhere. What runs goes on; the pause survives every restart."""
    order = order or Pause()
    return api.scheduler.pause(reason=order.reason, until=order.span, wait=WAIT_SECONDS)


@router.post("/resume", auth=acting("scheduler.resume"), response=answers.Status)
def resume(request: HttpRequest, order: Reason | None = None) -> Any:
    """Ends that pause. Pools and types that were paused by themselves stay so."""
    return api.scheduler.resume()


@stats.get("", auth=seen, response=answers.Stats)
def figures(request: HttpRequest, words: Query[StatsWords]) -> Any:
    """Jobs by state, pools with their load, totals by job type since ever, and how long jobs waited and ran lately."""
    snapshot = api.stats.snapshot()
    return {
        "server_time": iso(snapshot.server_time),
        "hosts": snapshot.hosts,
        "workers": snapshot.workers,
        "states": snapshot.states,
        "pools": [document(pool) for pool in snapshot.pools],
        "types": api.stats.types(),
        "minutes": words.minutes,
        **api.stats.durations(words.pool or None, words.minutes, type=words.type or None),
    }
