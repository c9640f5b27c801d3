"""Hosts that went without a word, those that run old code, and what was lost with workers."""

from __future__ import annotations

from django.urls import reverse

from dashboard.formats import count, plural
from dashboard.lately import LOST_MINUTES
from dashboard.needs.need import Need
from dashboard.overall import Overall

MANY_LOST = 3
"""Fewer may be one process that somebody killed by hand: the next one goes on with its jobs, and they tell it. A job
that kills its worker each time comes to this number by itself."""


def host_needs(overall: Overall) -> list[Need]:
    url = reverse("dashboard:workers")
    found = []
    if overall.silent:
        one = len(overall.silent) == 1
        before, noun = ("Host ", overall.silent[0]) if one else ("", plural(len(overall.silent), "host"))
        when = "its leases end" if overall.workers else "a worker is alive again"
        cause = f"It ended in no good order. What it ran is taken back when {when}."
        are = " has gone silent" if one else " have gone silent"
        found.append(Need("warning", before, noun, url, are, cause, action="Open workers"))
    if overall.outdated:
        one = len(overall.outdated) == 1
        before, noun = ("Host ", overall.outdated[0]) if one else ("", plural(len(overall.outdated), "host"))
        cause = f"Release {overall.newest} has been running beside it for over 10 minutes."
        are = " still runs old code" if one else " still run old code"
        found.append(Need("warning", before, noun, url, are, cause, action="Open workers"))
    return [*found, *_of_lost_leases(overall)]


def _of_lost_leases(overall: Overall) -> list[Need]:
    """One for all pools: what a host takes with it, it takes of each pool that it served."""
    lost = {pool["name"]: pool.get("lost", 0) for pool in overall.pools}
    number = sum(lost.values())
    if number < MANY_LOST:
        return []
    worst = max(lost, key=lambda name: lost[name])
    others = sum(1 for name, of_it in lost.items() if of_it and name != worst)
    more = f" and {plural(others, 'more pool')}" if others else ""
    cause = (
        f"{count(number)} in the last {LOST_MINUTES} minutes: their worker died, froze or was cut off. "
        "The jobs run again, unless they have lost too many."
    )
    return [
        Need(
            "warning",
            "Leases of ",
            f"pool {worst}{more}",
            reverse("dashboard:workers"),
            " were lost",
            cause,
            command="python manage.py doctor",
        )
    ]
