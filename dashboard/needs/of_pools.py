"""Pools that nobody serves, that are behind, or whose line grows."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.formats import age, count, duration, plural
from dashboard.links import jobs_url
from dashboard.needs.need import Need
from dashboard.needs.of_pauses import is_forgotten
from dashboard.overall import Overall
from dashboard.standing import growth_of, is_late, pause_of, paused_words, unserved


def pools_needs(overall: Overall) -> list[Need]:
    """One finding for all pools that wait for a worker while none is alive: it is one fault, and one command."""
    waiting = [] if overall.workers else [pool for pool in overall.pools if unserved(pool)]
    if len(waiting) < 2:
        return [need for pool in overall.pools for need in _pool_needs(pool, overall)]
    others = [need for pool in overall.pools if not unserved(pool) for need in _pool_needs(pool, overall)]
    return [_no_worker(waiting), *others]


def _no_worker(waiting: list[dict[str, Any]]) -> Need:
    oldest = max(waiting, key=lambda pool: pool["oldest_ready_age_seconds"] or 0)
    waited = duration(oldest["oldest_ready_age_seconds"] or 0)
    jobs = sum(pool["ready"] for pool in waiting)
    return Need(
        "warning",
        "No worker is alive, and ",
        f"{count(jobs)} ready jobs",
        jobs_url(state="ready"),
        f" wait in {count(len(waiting))} pools",
        f"The oldest has waited {waited}, in {oldest['name']}.",
        command="python manage.py runworkers",
    )


def _pool_needs(pool: dict[str, Any], overall: Overall) -> list[Need]:
    name, ready = pool["name"], pool["ready"]
    oldest = pool["oldest_ready_age_seconds"]
    need = partial(Need, "warning", "Pool ", name, jobs_url(pool=name, state="ready"), about=("pool", name))
    if pause_of(pool):
        if ready and pool["paused"] and is_forgotten(pool["paused"], overall):
            cause = f"{paused_words(pool['paused'])} Nothing says when it ends."
            return [need(f" is paused with {plural(ready, 'ready job')}", cause, action="Show the jobs")]
        return []
    if unserved(pool):
        waited = f"The oldest has waited {duration(oldest)}. " if oldest else ""
        only = "No worker of this pool is alive." if overall.workers else "No worker is alive at all."
        command = f"python manage.py runworkers --pool {name}"
        return [need(f" has {plural(ready, 'ready job')} and no worker", waited + only, command=command)]
    if is_late(pool):
        drains = "" if pool["throughput_per_second"] else " It does not drain."
        drains = f" {_grows(pool)}" if growth_of(pool) else drains
        cause = f"{plural(ready, 'job')} ready, {pool['leased']} of {pool['slots_actual']} slots busy.{drains}"
        return [need(f" is {age(oldest)} behind", cause, action="Show the jobs")]
    if growth_of(pool):
        of_pool = f"{reverse('dashboard:pools')}?{urlencode({'name': name})}"
        cause = f"{plural(ready, 'job')} ready. {_grows(pool)}"
        return [need(" is growing", cause, action="Open the pool", action_url=of_pool)]
    return []


def _grows(pool: dict[str, Any]) -> str:
    """``40 more come each minute than are done, and one that comes now waits about 3 min.``"""
    more = max(1, round(growth_of(pool)))
    wait = age(pool["predicted_wait_seconds"])
    return (
        f"{count(more)} more {'comes' if more == 1 else 'come'} each minute than are done, and a new one waits {wait}."
    )
