"""What doctor finds wrong with the server, for pages that look often: in one trip, and only what needs somebody now."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from jobs import api
from jobs.checks import server_problems
from jobs.core.wording import length
from jobs.management.diagnosis.finding import Finding, of_message
from jobs.management.diagnosis.server import PLACES, Server, judge_clock, judge_memory

SLOW_SECONDS = 0.1
"""A job takes at least three ways to the server. One within a machine takes 0.2 ms, within a region a few."""

TRIES = 3
"""The fastest of so many counts: each may have waited for this process instead of the server."""


def glance() -> list[Finding]:
    """What is wrong with the server, worst first; nothing where all is well.

    What SILENCED_SYSTEM_CHECKS names is left out. One trip to the server, three where it is slow. StoreUnavailable.
    """
    facts, asked_at, seconds = _asked()
    for _ in range(TRIES - 1):
        if seconds > SLOW_SECONDS:
            facts, asked_at, again = _asked()
            seconds = min(seconds, again)
    found = [*_judge(facts, asked_at), *judge_speed(seconds)]
    return sorted((one for one in found if one.status != "ok"), key=lambda one: one.status != "failed")


def _asked() -> tuple[Mapping[str, Any], datetime, float]:
    before, began = timezone.now(), time.perf_counter()
    facts = api.server_info()
    seconds = time.perf_counter() - began
    return facts, before + (timezone.now() - before) / 2, seconds


def _judge(facts: Mapping[str, Any], asked_at: datetime) -> Iterator[Finding]:
    info = facts["info"]
    for message in server_problems(info):
        check, setting = PLACES.get(message.id or "", PLACES["jobs.E025"])
        if not message.is_silenced() and not (check == "persistence" and facts["url"].startswith("memory:")):
            yield of_message(message, check, setting)
    told = int(info.get("server_time_usec") or 0)
    at = datetime.fromtimestamp(told / 1e6, asked_at.tzinfo) if told else asked_at
    server = Server(url=facts["url"], info=info, saves=True, time=at, asked_at=asked_at)
    yield from judge_memory(server)
    yield from judge_clock(server)


def judge_speed(seconds: float) -> Iterator[Finding]:
    """``seconds``: of one way to the server and back."""
    if seconds > SLOW_SECONDS:
        yield Finding(
            "speed",
            "warning",
            f"The server took {length(seconds)} to answer, at best.",
            "SCHEDULER_REDIS_URL",
            "Look for slow commands (SLOWLOG GET), a machine without memory, or a long way to it.",
        )
