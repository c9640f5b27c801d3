"""Pauses that somebody may have forgotten, and all that stands still."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from dashboard.formats import duration, near, plural, read_moment, sentence
from dashboard.links import jobs_url
from dashboard.needs.need import Need
from dashboard.overall import Overall
from dashboard.standing import parked, paused_words
from jobs.core.pause import by_whom

LONG_PAUSE_SECONDS = 3600.0
"""A pause without an end that is older than this needs somebody."""

OVERSTAYED_SECONDS = 120.0
"""Worker hosts lift a pause at its end, and look once a minute whether they missed one."""


def pause_needs(overall: Overall) -> list[Need]:
    """Pauses past their end that nobody has lifted, where jobs wait that they were to hold."""
    return [_past_its_end(pause, overall) for pause in overall.unlifted if _still_holds(pause, overall)]


def _still_holds(pause: dict[str, Any], overall: Overall) -> bool:
    until = read_moment(pause.get("until"))
    if until is None or (overall.now - until).total_seconds() <= OVERSTAYED_SECONDS:
        return False
    if pause["kind"] == "type":  # its jobs are set aside, whichever pool they are of
        return parked(overall.pools) > 0
    return any(
        pool["ready"] for pool in overall.pools if pause["kind"] == "everything" or pool["name"] == pause["name"]
    )


def _past_its_end(pause: dict[str, Any], overall: Overall) -> Need:
    name, until = pause["name"], read_moment(pause["until"]) or overall.now
    noun, url, resume = {
        "pool": (f"pool {name}", jobs_url(pool=name, state="ready"), f"pools resume {name}"),
        "type": (f"job type {name}", jobs_url(type=name, state="ready"), f"types resume {name}"),
    }.get(pause["kind"], ("everything", reverse("dashboard:pools"), "scheduler resume"))
    by = by_whom(pause.get("by"), pause.get("reason"))
    began = f"It was set {by}. " if by else ""
    lifts = "No worker host has lifted it" if overall.hosts else "No worker host is alive to lift it"
    command = f"python manage.py {resume}" if overall.hosts else "python manage.py runworkers"
    after = f" should have ended at {near(until, overall.now)}"
    return Need("warning", "The pause of ", noun, url, after, sentence(f"{began}{lifts}"), command=command)


def whole_needs(overall: Overall) -> list[Need]:
    ready = overall.count("ready") or 0
    if overall.paused:
        if not ready or not is_forgotten(overall.paused, overall):
            return []
        cause = f"{paused_words(overall.paused)} Nothing says when it ends."
        after = f" is paused with {plural(ready, 'ready job')}"
        return [Need("warning", "", "Everything", reverse("dashboard:pools"), after, cause, action="Open pools")]
    if overall.overdue_since is None:
        return []
    since = duration((overall.now - overall.overdue_since).total_seconds())
    return [
        Need(
            "warning",
            "",
            "Scheduled jobs",
            f"{reverse('dashboard:jobs')}?state=scheduled&state=retry_wait",
            " are due and stand in no line",
            f"The first has been due for {since}. No worker is alive to put it there.",
            command="python manage.py runworkers",
        )
    ]


def is_forgotten(pause: dict[str, Any], overall: Overall) -> bool:
    """A pause that has lasted long, and of which nothing says when it ends."""
    since = read_moment(pause.get("at"))
    return bool(since and not pause.get("until") and (overall.now - since).total_seconds() > LONG_PAUSE_SECONDS)
