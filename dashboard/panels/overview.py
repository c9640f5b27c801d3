"""The overview: what needs somebody, the five questions, where the jobs stand, how each pool does."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from dashboard import needs, questions, reads, standing, trends
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.panels.charts import asked_range, range_links
from dashboard.panels.workers import by_host
from jobs.api import JobFilter
from jobs.core.states import JobState

SAMPLE = 100
"""So many of the newest dead jobs are looked at for what they died of. The page says so when there are more."""

NEEDS_SHOWN = 5
GROUPS_SHOWN = 4
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
        groups, chart, hosts = [], None, []
        over = asked_range(request)
        if not overall.trouble:
            groups = reads.error_groups(JobFilter(states=(JobState.DEAD,)), SAMPLE) if overall.count("dead") else []
            chart = trends.throughput(trends.Steps(reads.points("", over.minutes), over, overall.now))
            hosts = by_host(reads.workers())
        sampled = sum(group.count for group in groups)
        loud = reads.mutes().loud(groups) if groups else []
        urgent = needs.needs(overall, loud, sampled)
        return {
            "headline": needs.headline(overall, urgent),
            "summary": questions.summary(overall),
            "needs": urgent,
            "needs_shown": urgent[:NEEDS_SHOWN],
            "needs_more": max(0, len(urgent) - NEEDS_SHOWN),
            "answers": questions.answers(overall),
            "life": LIFE,
            "pools": troubled_first(overall),
            "groups": groups[:GROUPS_SHOWN],
            "sampled": sampled,
            "chart": chart,
            "range": over,
            "ranges": range_links(request),
            "charts_url": f"{reverse('dashboard:charts')}?range={over.name}",
            "hosts": hosts,
        }


def troubled_first(overall: Overall) -> list[dict[str, Any]]:
    """Pools without a worker or late first, then by what waits; else by name."""
    return sorted(
        overall.pools,
        key=lambda pool: (
            not standing.unserved(pool),
            not standing.is_late(pool),
            not pool["paused"],
            pool["name"],
        ),
    )
