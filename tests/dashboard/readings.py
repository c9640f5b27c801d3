"""The whole as a page reads it, made up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dashboard.overall import Overall

NOW = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)


def pool(name: str = "billing", **facts: Any) -> dict[str, Any]:
    counts = ("ready", "scheduled", "retry_wait", "leased", "dead", "slots")
    zeros = dict.fromkeys((*counts, "throughput_per_second", "enqueued_per_second"), 0)
    healthy = {"name": name, "paused": None, "workers": 1, "slots_actual": 10}
    return zeros | healthy | {"oldest_ready_age_seconds": None, "predicted_wait_seconds": None} | facts


def overall(*pools: dict[str, Any]) -> Overall:
    states = {
        state: sum(each[state] for each in pools) for state in ("ready", "scheduled", "retry_wait", "leased", "dead")
    }
    return Overall(pools=pools, states=states, hosts=1, workers=1, at=NOW)
