"""The overview: what needs somebody, the five questions, where the jobs stand, what comes next, how each pool does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest
from django.urls import reverse

from dashboard import evidence, needs, questions, reads, standing, trends
from dashboard.day import MINUTES
from dashboard.firings import Line
from dashboard.links import jobs_url
from dashboard.needs import Need
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.panels.charts import asked_range, range_links
from dashboard.panels.workers import by_host
from dashboard.permissions import OPERATE, may
from jobs.api import ErrorGroup, JobFilter
from jobs.api.schedules import ScheduleStatus
from jobs.core.states import JobState

SAMPLE = 100
"""So many of the newest dead jobs are looked at for what they died of. The page says so when there are more."""

NEEDS_SHOWN = 5
NEEDS_LISTED = 50
"""With those to be unfolded. What is found goes with how much there is: no page lists a thousand."""

POOLS_SHOWN = 15
GROUPS_SHOWN = 4
FIRINGS_SHOWN = 5
STRIP = 12
"""Last firings beside each schedule."""

LIFE = (
    ("Waiting", (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.RETRY_WAIT)),
    ("Now", (JobState.LEASED,)),
    ("Ended and kept", (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.SKIPPED)),
)


class Overview(Panel):
    slug = "overview"
    title = "Overview"
    icon = "overview"
    group = "Operate"
    key = "o"
    on_phone = True
    refresh_seconds = 3.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        over, problems = asked_range(request)
        groups = _groups(overall)
        sampled = sum(group.count for group in groups)
        loud = reads.mutes().loud(groups) if groups else []
        urgent = needs.needs(overall, loud, sampled)
        notes = _notes(overall)
        firing, pools = _next_to_fire(overall), troubled_first(overall)
        return {
            "headline": needs.headline(overall, urgent),
            "summary": questions.summary(overall),
            "needs": [(need, _evidence(need, groups, notes, firing)) for need in urgent[:NEEDS_SHOWN]],
            "needs_below": urgent[NEEDS_SHOWN:NEEDS_LISTED],
            "needs_unlisted": max(0, len(urgent) - NEEDS_LISTED),
            "answers": questions.answers(overall),
            "life": LIFE,
            "life_urls": _life_urls(),
            "life_notes": _life_notes(overall, groups, sampled),
            "life_due": {} if overall.trouble else reads.next_due(),
            "pools": [pool | {"line": notes.get(pool["name"])} for pool in pools[:POOLS_SHOWN]],
            "pools_more": max(0, len(pools) - POOLS_SHOWN),
            "groups": groups[:GROUPS_SHOWN],
            "groups_more": max(0, len(groups) - GROUPS_SHOWN),
            "sampled": sampled,
            "firing": firing,
            "operates": may(request.user, OPERATE),
            "range": over,
            "problems": problems,
            "ranges": range_links(request),
            "charts_url": f"{reverse('dashboard:charts')}?range={over.name}",
            **_of_the_store(over, overall),
        }


def _groups(overall: Overall) -> list[ErrorGroup]:
    if overall.trouble or not overall.count("dead"):
        return []
    return reads.error_groups(JobFilter(states=(JobState.DEAD,)), SAMPLE).groups


def _of_the_store(over: trends.Range, overall: Overall) -> dict[str, Any]:
    if overall.trouble:
        return {"chart": None, "hosts": []}
    steps = trends.Steps(reads.points("", over.minutes), over, overall.now)
    day = overall.day
    releases = day.releases if day and over.minutes <= MINUTES else reads.releases(over.minutes)
    return {"chart": trends.throughput(steps, releases), "hosts": by_host(reads.workers())}


def _notes(overall: Overall) -> Mapping[str, evidence.Evidence]:
    """Pool → how much was ready in it over the last hour."""
    if overall.trouble:
        return {}
    return evidence.backlogs(overall.notes, overall.now, [pool["name"] for pool in overall.pools])


def _next_to_fire(overall: Overall) -> list[Line]:
    """The schedules that fire next, late ones first; none where they cannot be read."""
    if overall.trouble:
        return []
    try:
        names = reads.next_to_fire(FIRINGS_SHOWN)
        rows = {row.name: row for row in reads.schedules_named(names)}
        found = reads.schedule_status(list(rows), STRIP)
    except DatabaseError:
        return []
    return [Line(rows[name], found.get(name, ScheduleStatus(name=name)), overall.now) for name in names if name in rows]


def _evidence(
    need: Need,
    groups: Sequence[ErrorGroup],
    notes: Mapping[str, evidence.Evidence],
    firing: Sequence[Line],
) -> dict[str, Any]:
    """What is drawn beside a finding, under the name of its kind."""
    kind, name = need.about
    match kind:
        case "group":
            return {"group": next((group for group in groups if group.fingerprint == name), None)}
        case "pool":
            return {"line": notes.get(name)}
        case "schedule":
            return {"strip": next((line.strip for line in firing if line.name == name), None)}
    return {}


def _life_urls() -> dict[str, str]:
    """State → the list of what is in it. Who waits for others, or was skipped, is a node of a run and has no job."""
    runs = reverse("dashboard:workflows")
    urls = {str(state): jobs_url(state=state) for _, states in LIFE for state in states}
    return urls | {"blocked": f"{runs}?state=running", "skipped": runs}


def _life_notes(overall: Overall, groups: Sequence[ErrorGroup], sampled: int) -> dict[str, str]:
    """State → a word on it that no live figure tells."""
    notes = {"skipped": "of runs, in 24 h"}
    if overall.day and overall.day.ended:
        notes["succeeded"] = f"{overall.day.share} in 24 h"
    dead = overall.count("dead") or 0
    if groups:
        errors = f"{len(groups)} error{'' if len(groups) == 1 else 's'}"
        notes["dead"] = errors if sampled == dead else f"{errors} in the newest {sampled}"
    return notes


def troubled_first(overall: Overall) -> list[dict[str, Any]]:
    """Pools without a worker first, then those that are late, that grow, that are paused; by name in each."""
    return sorted(
        overall.pools,
        key=lambda pool: (
            not standing.unserved(pool),
            not standing.is_late(pool),
            not standing.growth_of(pool),
            not standing.pause_of(pool),
            pool["name"],
        ),
    )
