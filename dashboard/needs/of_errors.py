"""What died, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from statistics import fmean
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.formats import age, count, near, plural, sentence, shortened
from dashboard.needs.need import Need
from dashboard.overall import Overall
from dashboard.standing import pause_of
from jobs.api import ErrorGroup


def error_needs(overall: Overall, groups: Sequence[ErrorGroup], sampled: int) -> list[Need]:
    dead = overall.loud_dead
    if not dead:
        return []
    url = reverse("dashboard:dead")
    if not groups:
        return [
            Need(
                "dead",
                "",
                plural(dead, "job"),
                url,
                " died",
                f"{'It waits' if dead == 1 else 'They wait'} to be resubmitted or discarded.",
            )
        ]
    first = groups[0]
    common: dict[str, Any] = {
        "action": "Open the group",
        "action_url": f"{url}?{urlencode({'group': first.fingerprint})}",
        "about": ("group", first.fingerprint),
        "pool": _to_pause(first, overall),
    }
    what = f"{first.error_type}: {first.pattern}" if first.pattern else first.error_type
    if first.count == dead:
        of_one = " died of one error" if dead > 1 else " died"
        types = first.types[0] if len(first.types) == 1 else f"{len(first.types)} types"
        cause = f"{sentence(shortened(what, 160))}{_surge(first.hours, 'its')}{_began(first, overall)}"
        return [Need("dead", f"{plural(dead, 'job')} of ", types, url, of_one, cause, **common)]
    is_whole = sampled >= (overall.count("dead") or 0)  # muted ones are in the sample too
    sample = "" if is_whole else f" of the newest {count(sampled)}"
    are = "is" if first.count == 1 else "are"
    if is_whole:
        began = f"{_surge(first.hours, 'its')}{_began(first, overall)}"
    else:  # of a part of the dead nobody knows how many of them died of this before
        began = _surge(overall.day.died_by_hour if overall.day else (), "the", "jobs died ")
    cause = f"{count(first.count)}{sample} {are} one error of {', '.join(first.types[:2])}: {shortened(what, 120)}"
    return [Need("dead", "", plural(dead, "job"), url, " died", f"{sentence(cause)}{began}", **common)]


def _to_pause(group: ErrorGroup, overall: Overall) -> str:
    """The one pool in which jobs die of it, unless it is paused already."""
    held = {pool["name"] for pool in overall.pools if pause_of(pool)}
    return group.pools[0] if len(group.pools) == 1 and group.pools[0] not in held else ""


SOON = timedelta(minutes=30)
"""What begins within this time after a deploy is told with it."""


SURGE = 3.0
"""So many times the usual hour is a surge."""

LEAST_OF_SURGE = 10
"""Deaths in an hour; fewer come together by chance."""

LEAST_HOURS = 3
"""Since the first death: what began just now has no usual hour, and is told with its beginning."""


def _surge(hours: Sequence[int], whose: str, what: str = "") -> str:
    """`` 48 in the last hour, 4 × its usual one.`` Nothing where it is. ``hours``: deaths, the last hour last."""
    first = next((place for place, number in enumerate(hours) if number), len(hours))
    before = hours[first:-1]
    if len(before) < LEAST_HOURS or hours[-1] < LEAST_OF_SURGE:
        return ""
    times = hours[-1] / fmean(before)
    return f" {count(hours[-1])} {what}in the last hour, {times:.0f} × {whose} usual one." if times >= SURGE else ""


def _began(group: ErrorGroup, overall: Overall) -> str:
    """`` Began 13:04, 2 min after deploy 9f3c2ab.``"""
    if group.first_seen is None:
        return ""
    at = near(group.first_seen, overall.now)
    began = f" Began {at}" if group.count > 1 else f" It died at {at}"
    day = overall.day
    if day and day.released_at and timedelta() <= (after := group.first_seen - day.released_at) <= SOON:
        how_long = age(after.total_seconds()) if after >= timedelta(seconds=1) else "right"
        began += f", {how_long} after deploy {shortened(day.release, 24)}"
    return f"{began}."
