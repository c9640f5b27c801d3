"""The pools: what waits in each, who serves it, how fast; and one pool with its limits, its scaling and its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from dashboard import reads, standing
from dashboard.formats import UNKNOWN, count, duration, plural, some
from dashboard.overall import Overall
from dashboard.paging import page_of
from dashboard.panels.base import Badge, Panel
from dashboard.panels.overview import troubled_first
from dashboard.panels.topology import Version, by_pool
from dashboard.panels.workers import Member
from dashboard.permissions import OPERATE, may
from dashboard.sparklines import sparkline
from jobs.api import PoolSettings, Scaling
from jobs.core.figures import Figures
from jobs.core.job import moment

PER_PAGE = 50
SEARCH_MAX = 100

DRAWN = 20
"""So many pools of a page have a line of what they did: each is read by itself, though rarely."""

DECISIONS_SHOWN = 15
TYPES_SHOWN = 12
NAME_MAX = 100

REASONS = {
    "in_tolerance_band": "the wait is where it should be",
    "above_upper_boundary": "jobs wait a little too long",
    "below_lower_boundary": "jobs wait a little less than they may",
    "deviation_large_above_center": "jobs wait much too long",
    "deviation_large_below_center": "jobs wait much less than they may",
    "predicted_wait_zero": "nothing waits",
    "nothing_measured": "something waits, and nothing is known of its wait yet",
    "jobs_wait_without_slots": "jobs wait and there are no slots",
    "outside_of_bounds": "the bounds were moved",
    "cooling_down": "the last change is too recent",
    "held_by_max_running": "the limit of running jobs holds them back, not slots",
    "slots_are_free": "slots are free: it is not slots that jobs wait for",
    "no_workers": "no worker is alive",
    "paused": "the pool is paused",
}
"""What the one word of a decision says to people; others are shown as they are."""


class Pools(Panel):
    slug = "pools"
    title = "Pools"
    icon = "pools"
    group = "Run"
    key = "p"
    badge = Badge("warning", "pools.unserved", "without a worker")

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        common = {"operates": may(request.user, OPERATE)}
        name = request.GET.get("name", "")[:NAME_MAX]
        return common | (_one(name, overall) if name else _all(request, overall))


def _all(request: HttpRequest, overall: Overall) -> dict[str, Any]:
    search = request.GET.get("search", "")[:SEARCH_MAX].strip()
    matching = [pool for pool in troubled_first(overall) if search.lower() in pool["name"].lower()]
    part = page_of(matching, request.GET, PER_PAGE, kept=("search",))
    pools = part.items
    drawn = reads.pace([pool["name"] for pool in pools[:DRAWN]]) if pools else {}
    lines = {name: sparkline(series, overall.now) for name, series in drawn.items()}
    unserved = [pool["name"] for pool in overall.pools if standing.unserved(pool)]
    return {
        "pools": [pool | {"line": lines.get(pool["name"])} for pool in pools],
        "total": len(overall.pools),
        "search": search,
        "part": part,
        "sentence": _sentence(overall, unserved),
        "unserved": [pool["name"] for pool in pools if standing.unserved(pool)],
    }


def _sentence(overall: Overall, unserved: list[str]) -> str:
    if not overall.pools:
        return ""
    if unserved:
        return f"No worker serves {some(unserved)}, where jobs are ready."
    late = [pool["name"] for pool in overall.pools if standing.is_late(pool)]
    if late:
        return f"Late: {some(late)}."
    held = [pool["name"] for pool in overall.pools if pool["ready"] and standing.pause_of(pool)]
    if overall.paused and held:
        return f"{plural(overall.count('ready') or 0, 'job')} ready, and everything is paused."
    if held:
        return f"Paused with ready jobs: {some(held)}. Elsewhere every pool has a worker, and none is late."
    return "Every pool with ready jobs has a worker, and none is late."


# ---------------------------------------------------------------------------------------------------------- one pool


@dataclass(frozen=True)
class Decision:
    """A decision of the autoscaler, in words."""

    made: Scaling

    @property
    def at(self) -> datetime:
        return moment(self.made.last_at_ms)

    @property
    def slots(self) -> str:
        return f"{self.made.before} → {self.made.after}" if self.made.is_change else f"stays {self.made.after}"

    @property
    def wait(self) -> str:
        """The longer of the predicted and the oldest wait, which is the one that counts."""
        known = [wait for wait in (self.made.predicted_wait_seconds, self.made.oldest_wait_seconds) if wait is not None]
        return duration(max(known)) if known else UNKNOWN

    @property
    def why(self) -> str:
        words = REASONS.get(self.made.reason, self.made.reason.replace("_", " "))
        return f"{words} (dry run)" if self.made.dry_run else words


@dataclass(frozen=True)
class Share:
    """A job type's part of the work of a pool, since ever. ``permille``: of all seconds that jobs ran."""

    type: str
    started: int
    failed: int
    mean: float | None
    permille: int

    @property
    def percent(self) -> str:
        return f"{self.permille / 10:.0f} %" if self.permille >= 10 else "< 1 %"


def _one(name: str, overall: Overall) -> dict[str, Any]:
    pool = next((pool for pool in overall.pools if pool["name"] == name), None)
    if pool is None:
        return {"missing": name}
    settings, decisions = reads.pool_settings(name), reads.scalings(name)
    return {
        "pool": pool,
        "state": standing.pool_state(pool),
        "finding": finding(pool, settings),
        "drains": standing.drains_in(pool),
        "settings": settings,
        "rule": _rule(settings),
        "decisions": [Decision(made) for made in decisions[:DECISIONS_SHOWN]],
        "shares": shares(reads.types_of(name)),
        "versions": _versions(name),
        "members": _serving(name),
        "line": sparkline(reads.pace([name]).get(name, []), overall.now),
    }


def _versions(name: str) -> Sequence[Version]:
    """Its versions with their partitions, newest first; none where it is all in one partition."""
    partitions = reads.topology(name)
    return by_pool(partitions)[0].versions if len(partitions) > 1 else ()


def finding(pool: Mapping[str, Any], settings: PoolSettings) -> str:
    """The one line that says why the pool is as it is, and what would change that."""
    ready, slots, running = pool["ready"], pool["slots_actual"] or 0, pool["leased"]
    if pool["paused"]:
        return standing.paused_words(dict(pool["paused"])) + (f" {plural(ready, 'job')} ready." if ready else "")
    if standing.pause_of(dict(pool)):
        return f"Everything is paused; {plural(ready, 'job')} ready." if ready else "Everything is paused."
    if not pool["workers"]:
        return (
            f"No worker serves it; {plural(ready, 'job')} ready."
            if ready
            else "No worker serves it, and nothing waits."
        )
    if ready and pool.get("hosts_paused"):
        return f"Each host that serves it is paused; {plural(ready, 'job')} ready."
    if ready and not standing.has_waiting(dict(pool)):
        whose = "its type is" if ready == 1 else "their types are"
        return f"{plural(ready, 'job is', 'jobs are')} parked: {whose} unknown to live workers, paused, or disabled."
    if not ready:
        if not running:
            return "Nothing waits, and nothing runs."
        return f"Nothing waits; {plural(running, 'job')} {'runs' if running == 1 else 'run'}."
    if settings.max_running is not None and running >= settings.max_running:
        limit = count(settings.max_running)
        return f"Its limit is reached: {count(running)} of {limit} run. {plural(ready, 'job')} ready."
    if not slots:
        return f"It has no slots: scale it. {plural(ready, 'job')} ready."
    if running >= slots:
        return f"All {count(slots)} slots are busy; {plural(ready, 'job')} ready."
    return f"{plural(ready, 'job')} ready, {count(running)} of {count(slots)} slots busy."


def _rule(settings: PoolSettings) -> str:
    rule = settings.autoscale
    if rule is None:
        return ""
    mode = "Dry run" if rule.dry_run else "On"
    return (
        f"{mode}: {rule.min_slots} to {rule.max_slots} slots per worker process, for a wait of "
        f"{duration(rule.target_wait_seconds)} ± {duration(rule.tolerance_seconds)}, "
        f"a change at most every {duration(rule.cooldown_seconds)}."
    )


def shares(types: Mapping[str, Figures]) -> list[Share]:
    """By how long they ran, the longest first."""
    ran = {name: figures.run.total_ms + figures.failed_ms for name, figures in types.items()}
    total = sum(ran.values()) or 1
    found = [
        Share(
            type=name,
            started=figures.count("started"),
            failed=figures.count("failed"),
            mean=figures.run_seconds,
            permille=round(1000 * ran[name] / total),
        )
        for name, figures in types.items()
        if figures.count("started")
    ]
    return sorted(found, key=lambda share: (-share.permille, share.type))[:TYPES_SHOWN]


def _serving(name: str) -> Sequence[Member]:
    serving = (worker for worker in reads.workers() if name in worker.pools and not worker.is_host)
    return [Member(worker) for worker in serving if worker.alive]
