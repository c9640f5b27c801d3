"""What died, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.formats import age, count, near, plural, sentence, shortened
from dashboard.needs.need import Need
from dashboard.overall import Overall
from jobs.api import ErrorGroup


def of_errors(overall: Overall, groups: Sequence[ErrorGroup], sampled: int) -> list[Need]:
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
        "pool": first.pools[0] if len(first.pools) == 1 else "",
    }
    what = f"{first.error_type}: {first.pattern}" if first.pattern else first.error_type
    if first.count == dead:
        of_one = " died of one error" if dead > 1 else " died"
        types = first.types[0] if len(first.types) == 1 else f"{len(first.types)} types"
        cause = f"{sentence(shortened(what, 160))}{_began(first, overall)}"
        return [Need("dead", f"{plural(dead, 'job')} of ", types, url, of_one, cause, **common)]
    is_whole = sampled >= (overall.count("dead") or 0)  # muted ones are in the sample too
    sample = "" if is_whole else f" of the newest {count(sampled)}"
    are = "is" if first.count == 1 else "are"
    began = _began(first, overall) if is_whole else ""
    cause = f"{count(first.count)}{sample} {are} one error of {', '.join(first.types[:2])}: {shortened(what, 120)}"
    return [Need("dead", "", plural(dead, "job"), url, " died", f"{sentence(cause)}{began}", **common)]


SOON = timedelta(minutes=30)
"""What begins within this time after a deploy is told with it."""


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
