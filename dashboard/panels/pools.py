"""The pools: what waits in each, who serves it, how fast."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard import findings
from dashboard.panels.base import Badge, Panel
from dashboard.panels.overview import troubled_first
from dashboard.permissions import OPERATE, may
from dashboard.reads import Overall


class Pools(Panel):
    slug = "pools"
    title = "Pools"
    icon = "pools"
    group = "Run"
    key = "p"
    badge = Badge("warning", "pools.unserved", "pools without a worker")

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        unserved = [pool["name"] for pool in overall.pools if findings.unserved(pool)]
        return {
            "pools": troubled_first(overall),
            "sentence": _sentence(overall, unserved),
            "unserved": unserved,
            "operates": may(request.user, OPERATE),
        }


def _sentence(overall: Overall, unserved: list[str]) -> str:
    if not overall.pools:
        return ""
    if unserved:
        names = ", ".join(unserved[:3]) + (f" and {len(unserved) - 3} more" if len(unserved) > 3 else "")
        return f"No worker serves {names}, where jobs are ready."
    late = [pool["name"] for pool in overall.pools if findings.is_late(pool)]
    if late:
        return f"Late: {', '.join(late[:3])}."
    return "Every pool with ready jobs has a worker, and none is late."
