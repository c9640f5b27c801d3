"""What stands beside a finding: a small picture of how it came to be, with the same said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.chart import Mark, round_up
from dashboard.formats import UNKNOWN, clock, count, plural
from dashboard.trends import deploys_between, told_marks
from jobs.api import ErrorGroup, Noted, Release

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


GRID = 99
"""Height of the large picture in its own units; an hour is ten of them wide."""


@dataclass(frozen=True)
class DeathsByHour:
    """The same as a large picture. ``path``: its bars; ``unknown``: how much of its width, in its own units, is older
    than what was looked at; ``scale``: from the top; ``times``: five of them; ``rows``: the hours as a table, newest
    first."""

    path: str
    width: int
    unknown: float
    scale: tuple[str, ...]
    times: tuple[str, ...]
    marks: tuple[Mark, ...]
    sentence: str
    rows: tuple[tuple[str, str], ...]


def by_the_hour(group: ErrorGroup, now: datetime, releases: Sequence[Release], *, is_whole: bool) -> DeathsByHour:
    """How many died of an error in each of the last 24 hours, and the deploys among them.

    ``is_whole``: all of them were looked at. Else nothing is known of what came before the first that was.
    """
    hours = group.hours
    begin, top = now - timedelta(hours=len(hours)), max(3.0, round_up(max(hours)))
    starts = [begin + timedelta(hours=place) for place in range(len(hours))]
    marks = deploys_between(releases, begin, now)
    looked_at = group.first_seen if not is_whole and group.first_seen else begin
    bars = (
        f"M{10 * place + 1} {GRID}v-{(high := max(2, round(GRID * number / top)))}h8v{high}z"
        for place, number in enumerate(hours)
        if number
    )
    return DeathsByHour(
        path="".join(bars),
        width=10 * len(hours),
        unknown=max(0.0, round((looked_at - begin).total_seconds() / 360, 1)),
        scale=tuple(count(top * part / 3) for part in (3, 2, 1, 0)),
        times=tuple(_minute(begin + (now - begin) * part / 4) for part in range(5)),
        marks=marks,
        sentence=_told_by_the_hour(hours, starts, looked_at) + told_marks(marks),
        rows=tuple(
            (_minute(at), count(number) if number or at >= looked_at else UNKNOWN)
            for at, number in zip(starts, hours, strict=True)
        )[::-1],
    )


def _told_by_the_hour(hours: Sequence[int], starts: Sequence[datetime], looked_at: datetime) -> str:
    if not any(hours):
        return "None died in the last 24 hours."
    most, last = max(hours), count(hours[-1]) if hours[-1] else "none"
    worst = _minute(starts[len(hours) - 1 - hours[::-1].index(most)])
    died, before = f"{plural(sum(hours), 'job')} died in 24 hours", ""
    if looked_at > starts[0]:
        died, before = f"At least {died}", f" What died before {_minute(looked_at)} was not looked at."
    return f"{died}: {count(most)} in the worst, from {worst} on, and {last} in the last.{before}"


def _minute(at: datetime) -> str:
    return clock(at)[:5]


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
