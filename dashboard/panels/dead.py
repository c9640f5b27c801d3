"""Dead letters: what gave up, grouped by its error, and what to do about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from dashboard import groups, reads
from dashboard.day import MINUTES
from dashboard.evidence import by_the_hour
from dashboard.filters import DEPLOY, Filters
from dashboard.overall import Overall
from dashboard.panels.base import Badge
from dashboard.panels.jobs import ID_MAX, Jobs
from dashboard.reads import Groups
from jobs.api import Page
from jobs.exceptions import OptionInvalid

SAMPLE = 200
"""So many of the newest dead jobs that match are grouped by their error. The page says so when there are more."""

SINCE = (("deploy", "the last deploy"), ("1h", "one hour ago"), ("24h", "24 hours ago"), ("", "ever"))
"""Moments since when a job may have been created, for one press each: as filters write them, and in words."""

NONE = Groups([], is_whole=True)


class Dead(Jobs):
    """The job list, held to the state dead."""

    slug = "dead"
    title = "Dead letters"
    icon = "letters"
    key = "d"
    on_phone = True
    badge = Badge("dead", "dead.loud", "dead")

    def filters(self, request: HttpRequest) -> Filters:
        return replace(super().filters(request), states=("dead",))

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        context = super().context(request, overall)
        filters = context["filters"]
        found = _groups_from(context["page"], filters, overall)
        of_one = filters.group and found.groups
        return (
            context
            | _since(filters)
            | _summary(filters, overall, found)
            | {"tabs": None, "matching": _matching(context["page"], filters, overall)}
            | (_group(filters, overall, found, request.GET.get("specimen", "")[:ID_MAX]) if of_one else {})
        )

    def updates(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        context = super().updates(request, overall)
        filters = context["filters"]
        shown = overall.count("dead") and not filters.cursor
        found = reads.error_groups(filters.selection(overall.now), SAMPLE) if shown else NONE
        matching = {"matching": _matching(context["page"], filters, overall)}
        return context | _since(filters) | _summary(filters, overall, found) | matching


def _groups_from(page: Page, filters: Filters, overall: Overall) -> Groups:
    """What the newest that match died of; nothing on the pages after the first."""
    return NONE if filters.cursor else reads.error_groups_from(page, filters.selection(overall.now), SAMPLE)


def _group(filters: Filters, overall: Overall, found: Groups, specimen: str) -> dict[str, Any]:
    """The page of one error: when its jobs died, what they share, in what they differ, and one of them in full: the
    newest, or the one of this id.
    """
    jobs = reads.dead_sample(filters.selection(overall.now), SAMPLE)
    if not jobs:
        return {}
    place = next((place for place, job in enumerate(jobs) if job.id == specimen), 0)
    older = jobs[place + 1] if place + 1 < len(jobs) else None
    return {
        "deaths": by_the_hour(found.groups[0], overall.now, reads.releases(MINUTES), is_whole=found.is_whole),
        "group_jobs": len(jobs),
        "facts": groups.facts(jobs),
        "specimen": jobs[place],
        "specimen_is_gone": bool(specimen) and jobs[place].id != specimen,
        "place": place + 1,
        "newer": jobs[place - 1] if place else None,
        "older_one": older,
        "differences": groups.differences(jobs[place], older) if older else [],
    }


def _since(filters: Filters) -> dict[str, Any]:
    """The moments to choose among, each with the list from there on; the deploy only where one is known."""
    try:
        deploy = reads.newest_release()
    except OptionInvalid:
        deploy = None
    known = [(word, words) for word, words in SINCE if word != DEPLOY or deploy]
    return {
        "deploy": deploy,
        "since_choices": [(word, words, replace(filters, since=word, cursor="").query) for word, words in known],
    }


def _summary(filters: Filters, overall: Overall, found: Groups) -> dict[str, Any]:
    """The heading and the groups above the list: of the newest that match."""
    sampled, dead = sum(group.count for group in found.groups), overall.count("dead")
    return {
        "groups": found.groups,
        "sampled": sampled,
        "newest_only": not found.is_whole and sampled != dead,
        "chips": [chip for chip in filters.chips if chip.word != "state"],
        "dead": dead,
    }


def _matching(page: Page | None, filters: Filters, overall: Overall) -> int | None:
    """How many match, where that is known without looking at each; None elsewhere: the confirmation counts them.
    ``page``: the first of the list; None, another one is shown."""
    if not filters.looks_at_each:
        return sum(int(pool["dead"]) for pool in overall.pools if filters.pool in ("", pool["name"]))
    return len(page.items) if page is not None and not (page.next_cursor or filters.cursor) else None
