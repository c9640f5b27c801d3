"""What a pool did in the last hour, small enough for a row of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.formats import plural, rate
from jobs.api import Point

WIDTH, HEIGHT = 120, 28
MINUTES = 60
STEP_SECONDS = 10


@dataclass(frozen=True)
class Sparkline:
    """Attempts that ended per minute as a line, and in words."""

    path: str
    label: str


def sparkline(points: Sequence[Point], now: datetime) -> Sparkline | None:
    """None when nothing has ended in the last hour."""
    end = math.floor(now.timestamp() / STEP_SECONDS) * STEP_SECONDS
    minutes = [0] * MINUTES
    for point in points:
        back = (end - point.at.timestamp()) / 60
        if 0 < back <= MINUTES:
            minutes[MINUTES - math.ceil(back)] += point.figures.ended
    if not any(minutes):
        return None
    step, top = (WIDTH - 2) / (MINUTES - 1), max(minutes)
    places = (
        f"{1 + number * step:.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / top:.1f}" for number, value in enumerate(minutes)
    )
    label = f"{plural(sum(minutes), 'attempt')} ended in the last hour, {rate(minutes[-1] / 60)}/s in the last minute"
    return Sparkline("M" + " ".join(places), label)
