"""What the last 24 hours were like, and what became of jobs since the release that runs now."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from jobs.api import Point, Release

MINUTES = 1440
HOURS = 24

STEP = 300
"""Seconds of the steps in which a whole day is read."""

FINE_MINUTES = 120
"""A release that is younger than this is followed in steps of ten seconds."""


@dataclass(frozen=True)
class Day:
    """Jobs that ended in 24 hours; the newest release of your code in that time, and the jobs that died since."""

    succeeded: int = 0
    died: int = 0
    releases: tuple[Release, ...] = ()  # oldest first
    release: str = ""
    released_at: datetime | None = None
    died_since: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)  # pool → attempts that lost their worker a while ago
    died_by_hour: tuple[int, ...] = ()  # the last hour last

    @property
    def ended(self) -> int:
        return self.succeeded + self.died

    @property
    def share(self) -> str:
        """``99.6 %`` succeeded; never 100 % where one died."""
        return f"{math.floor(1000 * self.succeeded / self.ended) / 10:g} %" if self.ended else ""


def day_of(
    points: Sequence[Point], releases: Sequence[Release], since: Callable[[datetime], Sequence[Point]], now: datetime
) -> Day:
    """``since``: asks for what happened after a moment in steps as fine as there are."""
    release = releases[-1] if releases else None
    return Day(
        succeeded=_sum(points, "succeeded"),
        died=_sum(points, "dead"),
        releases=tuple(releases),
        release=release.name if release else "",
        released_at=release.at if release else None,
        died_since=_sum(since(release.at), "dead") if release else 0,
        died_by_hour=_by_hour(points, "dead", now),
    )


def _by_hour(points: Sequence[Point], name: str, now: datetime) -> tuple[int, ...]:
    hours = [0] * HOURS
    for point in points:
        ago = int((now - point.at).total_seconds() // 3600)
        if 0 <= ago < HOURS:
            hours[HOURS - 1 - ago] += point.figures.count(name)
    return tuple(hours)


def _sum(points: Sequence[Point], name: str) -> int:
    return sum(point.figures.count(name) for point in points)
