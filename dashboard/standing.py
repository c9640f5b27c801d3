"""How a pool stands, in words that every page uses: late, unserved, paused, how long until it has drained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dashboard.formats import count, duration, near, read_moment
from jobs.core.pause import by_whom

LATE_SECONDS = 60.0
"""A job that is ready for longer than this is late."""


WAIT_THAT_MATTERS_SECONDS = LATE_SECONDS / 2
"""Where a job that comes now waits for longer, a line that grows is about to make jobs late."""


def pause_of(pool: dict[str, Any]) -> Any:
    """Its own pause, else that of everything; None where neither holds it."""
    return pool["paused"] or pool.get("everything_paused")


def waits_long(pool: dict[str, Any]) -> bool:
    """True when a job is ready for too long, whatever the cause."""
    return (pool["oldest_ready_age_seconds"] or 0) > LATE_SECONDS


def is_late(pool: dict[str, Any]) -> bool:
    """True when a job is ready for too long, and nobody has paused the pool on purpose."""
    return waits_long(pool) and not pause_of(pool)


def growth_of(pool: dict[str, Any]) -> float:
    """Jobs by which the line grows each minute, where that is about to make them late, or has; else 0."""
    slow = (pool["predicted_wait_seconds"] or 0) > WAIT_THAT_MATTERS_SECONDS
    return float(pool.get("growing", 0)) if slow and pool["workers"] and not pause_of(pool) else 0.0


def has_waiting(pool: dict[str, Any]) -> bool:
    """True when a job is ready that a worker may take. Those of types that none may run stand in no line."""
    return int(pool["ready"]) > int(pool.get("parked", 0))


def unserved(pool: dict[str, Any]) -> bool:
    """True when jobs are ready that nobody will run: no worker, and nobody has paused the pool on purpose."""
    return bool(pool["ready"] and not pool["workers"] and not pause_of(pool))


def pool_state(pool: dict[str, Any]) -> tuple[str, str, str]:
    """How a pool is doing, as (mark, word, explanation). Healthy is plain: quiet is good."""
    if pool["paused"]:
        return "pause", "paused", about_pause(pool["paused"]).lstrip(": ")
    if pause_of(pool):
        return "pause", "paused", "with everything"
    if not pool["workers"]:
        return "warning" if unserved(pool) else "", "no worker", ""
    if pool.get("hosts_paused"):
        return "pause", "hosts paused", "Each host that serves it is paused on its own."
    return "", "working" if pool["leased"] else "idle", ""


def paused_words(pause: dict[str, Any]) -> str:
    """``Paused by ana until 15:00: disk move.``"""
    return f"Paused{about_pause(pause)}."


def about_pause(pause: dict[str, Any]) -> str:
    """`` by ana until 15:00: disk move``, as much of it as is known."""
    until = read_moment(pause.get("until"))
    when = f"until {near(until, read_moment(pause.get('at')) or until)}" if until else ""
    words = by_whom(pause.get("by"), pause.get("reason"), when=when)
    return f" {words}".replace(" :", ":", 1) if words else ""


def drains_in(pool: dict[str, Any]) -> str:
    """How long until the pool's ready jobs have started: ``now``, ``11 min``, ``growing``, ``never``, ``paused``,
    ``unknown``."""
    if pause_of(pool):
        return "paused"
    if not pool["ready"]:
        return "now"
    if not pool["workers"]:
        return "never"
    if pool.get("hosts_paused") and pool["predicted_wait_seconds"] is None:
        return "paused"
    if growth_of(pool):
        return "growing"
    stands_still = not pool["throughput_per_second"] and is_late(pool)
    if pool["predicted_wait_seconds"] is None or stands_still:
        return "unknown"
    return "now" if pool["predicted_wait_seconds"] < 5 else duration(pool["predicted_wait_seconds"])


def busy_words(busy: int, slots: int) -> str:
    return f"{count(busy)} of {count(slots)} slots busy" if slots else f"{count(busy)} running, no slots"


def parked(pools: Iterable[dict[str, Any]]) -> int:
    """Ready jobs of types that no live worker may run: unknown to them, paused, or disabled."""
    return sum(int(pool.get("parked", 0)) for pool in pools)
