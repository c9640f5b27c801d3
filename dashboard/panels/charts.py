"""What happened over a time: throughput, failures, backlog, waiting and running, of one pool or of all."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from dashboard import reads, trends
from dashboard.chart import Chart
from dashboard.choices import chosen
from dashboard.overall import Overall
from dashboard.panels.base import Panel


class Charts(Panel):
    slug = "charts"
    title = "Charts"
    icon = "charts"
    group = "Look back"
    key = "c"
    refresh_seconds = 10.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        (over, problems), pool = asked_range(request), request.GET.get("pool", "")
        pools = sorted(found["name"] for found in overall.pools)
        known = not pool or pool in pools
        return {
            "range": over,
            "problems": problems,
            "ranges": range_links(request),
            "pool": pool,
            "pool_names": pools,
            "unknown_pool": "" if known else pool,
            "charts": of_pool(pool, over, overall) if known else [],
        }


def of_pool(pool: str, over: trends.Range, overall: Overall) -> list[Chart]:
    """Every chart of a pool, of all of them together where it is ``""``."""
    steps = trends.Steps(reads.points(pool, over.minutes), over, overall.now)
    deploys = reads.releases(over.minutes)
    return [
        trends.throughput(steps, deploys),
        trends.failures(steps, deploys),
        trends.backlog(reads.backlog(over.minutes), steps, pool),
        trends.waits(steps, deploys),
        trends.runs(steps, deploys),
    ]


def asked_range(request: HttpRequest) -> tuple[trends.Range, list[str]]:
    """The range in the address of a page, the usual one where it names none; and what is wrong with it."""
    name, problem = chosen(request.GET.get("range", ""), "range", trends.RANGES)
    return trends.RANGES[name or trends.DEFAULT], [problem] if problem else []


def range_links(request: HttpRequest) -> list[tuple[trends.Range, str]]:
    """Each range with the query that chooses it and keeps everything else."""
    kept = {name: value for name, value in request.GET.items() if name != "range"}
    return [(over, "?" + urlencode({**kept, "range": over.name})) for over in trends.RANGES.values()]
