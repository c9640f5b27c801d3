"""What stands beside a finding: a small picture of how it came to be, with the same said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.formats import count, plural
from jobs.api import ErrorGroup, Noted

WIDTH, HEIGHT = 120, 28
MINUTES = 60


@dataclass(frozen=True)
class Evidence:
    """``area``: the ground under the line; empty where there is none. ``end``: where the line ends."""

    path: str
    area: str
    end: tuple[float, float]
    label: str


@dataclass(frozen=True)
class Trend:
    """Deaths by the hour over a day, as bars; ``deploy``: where the newest release lies among them, None: not there."""

    path: str
    deploy: float | None
    label: str


def trend(group: ErrorGroup, now: datetime, deployed: datetime | None = None) -> Trend | None:
    """None where nothing died in the last day."""
    hours = group.hours
    most = max(hours, default=0)
    if not most:
        return None
    bar = WIDTH / len(hours)
    bars = (
        f"M{place * bar + 0.5:g} {HEIGHT}v-{(high := max(2, round((HEIGHT - 2) * number / most)))}h{bar - 1:g}v{high}z"
        for place, number in enumerate(hours)
        if number
    )
    ago = (now - deployed).total_seconds() / 3600 if deployed else len(hours) + 1.0
    deploy = round(WIDTH - ago * bar, 1) if 0 <= ago <= len(hours) else None
    words = f"By hour, over 24 hours: at most {plural(most, 'job')} in one, {count(hours[-1])} in the last."
    return Trend("".join(bars), deploy, words + (" The dashed line is the last deploy." if deploy is not None else ""))


def backlogs(notes: Sequence[Noted], now: datetime, pools: Sequence[str]) -> Mapping[str, Evidence]:
    """How many jobs were ready in each of these pools over the last hour, where that was noted at least twice."""
    known = [note for note in notes if 0 <= (now - note.at).total_seconds() <= MINUTES * 60]
    found = {}
    for pool in pools:
        values = [note.ready.get(pool, 0) for note in known]
        if len(values) > 1 and any(values):
            found[pool] = _line(known, values, now)
    return found


def _line(notes: Sequence[Noted], values: Sequence[int], now: datetime) -> Evidence:
    most = max(values)
    points = [
        (
            round(1 + (WIDTH - 4) * (1 - (now - note.at).total_seconds() / (MINUTES * 60)), 1),
            round(HEIGHT - 1.5 - (HEIGHT - 5) * value / most, 1),
        )
        for note, value in zip(notes, values, strict=True)
    ]
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    label = (
        f"Ready jobs in the last hour: {count(values[0])} at first, {count(values[-1])} at last, {count(most)} at most."
    )
    return Evidence(path, f"{path}V{HEIGHT}H{points[0][0]:g}Z", points[-1], label)
