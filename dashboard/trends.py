"""What happened over a time, of one pool or all: the figures of a range added up by its steps, and the charts of them.

All charts of a page share one range, which is in its address.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from dashboard.chart import Chart, Line, Mark, last_of
from dashboard.formats import clock, count, duration, plural, rate, shortened
from jobs.api import Noted, Point, Release
from jobs.core.figures import Figures

BUCKET = 10
"""Seconds of the finest figures there are."""

POOLS_SHOWN = 5
"""Lines of single pools in a chart; the others are one line together."""


@dataclass(frozen=True)
class Range:
    """How far back charts look, in steps of so many seconds."""

    name: str  # as in the address
    words: str
    minutes: int
    step: int


RANGES = {
    found.name: found
    for found in (
        Range("15m", "15 min", 15, 30),
        Range("1h", "hour", 60, 60),
        Range("6h", "6 hours", 360, 300),
        Range("24h", "24 hours", 1440, 1200),
        Range("7d", "7 days", 10_080, 7200),
        Range("30d", "30 days", 43_200, 28_800),
    )
}
DEFAULT = "1h"


class Steps:
    """Figures of a range, added up by its steps, which end at the last whole one."""

    def __init__(self, points: Iterable[Point], over: Range, now: datetime) -> None:
        self.range = over
        end = math.floor(now.timestamp() / BUCKET) * BUCKET
        number = over.minutes * 60 // over.step
        self._first = end - number * over.step
        self.starts = tuple(datetime.fromtimestamp(self._first + over.step * place, UTC) for place in range(number))
        self.end = datetime.fromtimestamp(end, UTC)
        self.figures = tuple(Figures() for _ in self.starts)
        for point in points:
            if (place := self.place(point.at)) is not None:
                self.figures[place].merge(point.figures)

    def place(self, at: datetime) -> int | None:
        """In which step a moment lies."""
        place = int((at.timestamp() - self._first) // self.range.step)
        return place if 0 <= place < len(self.starts) else None

    def counts(self, name: str) -> tuple[int, ...]:
        return tuple(figures.count(name) for figures in self.figures)

    @property
    def span(self) -> str:
        first, last = timezone.localtime(self.starts[0]), timezone.localtime(self.end)
        if self.range.minutes < 1440:
            return f"between {clock(first)[:5]} and {clock(last)[:5]}"
        return f"between {first.day} {first:%b, %H:%M} and {last.day} {last:%b, %H:%M}"


MARKS_SHOWN = 12
"""The newest deploys of a range."""

LABEL_ROOM = 22.0
"""Percent of the width that the name of a deploy needs."""


def deploys(releases: Sequence[Release], steps: Steps) -> tuple[Mark, ...]:
    """Where releases lie within the range of a chart."""
    return deploys_between(releases, steps.starts[0], steps.end)


def deploys_between(releases: Sequence[Release], first: datetime, last: datetime) -> tuple[Mark, ...]:
    """Where releases lie in that time. The newest is named, and each older one that has room for its name."""
    found: list[Mark] = []
    free = 200.0
    for release in sorted(releases, key=lambda release: release.at, reverse=True):
        if not first <= release.at <= last or len(found) == MARKS_SHOWN:
            continue
        place = round(100 * (release.at - first) / (last - first), 2)
        name = shortened(release.name, 16)
        has_room = free - place >= LABEL_ROOM
        found.append(Mark(place, release.name, f"deploy {name}" if has_room else ""))
        if has_room:
            free = place - (LABEL_ROOM if place > 70 else 0)
    return tuple(reversed(found))


def told_marks(marks: Sequence[Mark]) -> str:
    """`` Deploys: 41d07aa, 9f3c2ab.``"""
    return f" Deploy{'s' if len(marks) > 1 else ''}: {', '.join(mark.name for mark in marks)}." if marks else ""


def throughput(steps: Steps, releases: Sequence[Release] = ()) -> Chart:
    """Jobs that came and jobs that succeeded per second, with deaths on a track of their own."""
    marks = deploys(releases, steps)
    done, new, deaths = steps.counts("succeeded"), steps.counts("enqueued"), steps.counts("dead")
    return Chart(
        slug="throughput",
        title="Jobs per second",
        sentence=f"{plural(sum(done), 'job')} succeeded and {count(sum(deaths))} died {steps.span}.{told_marks(marks)}",
        starts=steps.starts,
        step=steps.range.step,
        lines=(
            Line("done", tuple(number / steps.range.step for number in done), "succeeded"),
            Line("new", tuple(number / steps.range.step for number in new), dash=1),
        ),
        write=rate,
        unit="/s",
        deaths=deaths if any(deaths) else (),
        area=True,
        marks=marks,
    )


def failures(steps: Steps, releases: Sequence[Release] = ()) -> Chart:
    """Attempts that failed, of them those whose job died, and attempts whose worker died."""
    names = (("failed", "failed", "retry_wait", 0), ("dead", "died", "dead", 0), ("crashed", "crashed", "", 1))
    sums = {name: sum(steps.counts(name)) for name, *_ in names}
    return Chart(
        slug="failures",
        title="Failures per minute",
        sentence=(
            f"{plural(sums['failed'], 'attempt')} failed, {plural(sums['dead'], 'job')} died "
            f"and {plural(sums['crashed'], 'attempt')} crashed {steps.span}."
        ),
        marks=deploys(releases, steps),
        starts=steps.starts,
        step=steps.range.step,
        lines=tuple(
            Line(label, tuple(number * 60 / steps.range.step for number in steps.counts(name)), mark, dash)
            for name, label, mark, dash in names
        ),
        write=rate,
        unit="/min",
    )


def waits(steps: Steps, releases: Sequence[Release] = ()) -> Chart:
    """How long jobs were ready before they were taken."""
    return _percentiles("wait", "Wait", "waited", steps, "ready", releases)


def runs(steps: Steps, releases: Sequence[Release] = ()) -> Chart:
    """How long attempts that succeeded ran."""
    return _percentiles("run", "Run time", "ran", steps, "leased", releases)


def _percentiles(what: str, title: str, verb: str, steps: Steps, mark: str, releases: Sequence[Release]) -> Chart:
    told = [getattr(figures, what).as_dict() for figures in steps.figures]
    whole = Figures()
    for figures in steps.figures:
        whole.merge(figures)
    over = getattr(whole, what).as_dict()
    sentence = (
        f"Half of {plural(over['count'], 'job')} {verb} up to {duration(over['p50'])}, "
        f"one in a hundred over {duration(over['p99'])} {steps.span}."
        if over["count"]
        else f"No job {verb} {steps.span}."
    )
    return Chart(
        slug=what,
        title=title,
        sentence=sentence,
        starts=steps.starts,
        step=steps.range.step,
        lines=tuple(
            Line(name, tuple(step[name] if step["count"] else None for step in told), mark, dash)
            for dash, name in enumerate(("p50", "p95", "p99"))
        ),
        write=duration,
        unit="",
        marks=deploys(releases, steps),
        is_of_time=True,
    )


def backlog(notes: Sequence[Noted], steps: Steps, pool: str = "") -> Chart:
    """Ready jobs by pool: those with most of them each, the others together."""
    sums: list[dict[str, list[int]]] = [{} for _ in steps.starts]
    seen = [0] * len(steps.starts)
    for note in notes:
        at = min(note.at, steps.end - timedelta(seconds=1))  # one of this very moment is of the last step
        if (place := steps.place(at)) is None:
            continue
        seen[place] += 1
        for name, ready in note.ready.items():
            sums[place].setdefault(name, []).append(ready)
    of_pool = {
        name: tuple(
            sum(step.get(name, ())) / number if number else None for step, number in zip(sums, seen, strict=True)
        )
        for name in sorted({name for step in sums for name in step} if not pool else {pool})
    }
    of_pool = {name: _carried(values, notes, steps) for name, values in of_pool.items()}
    largest = sorted(of_pool, key=lambda name: -max((value or 0 for value in of_pool[name]), default=0))
    shown, rest = largest[:POOLS_SHOWN], largest[POOLS_SHOWN:]
    lines = [Line(name, of_pool[name], "ready", dash) for dash, name in enumerate(shown)]
    if rest:
        lines.append(Line(plural(len(rest), "other pool"), _added([of_pool[name] for name in rest]), "", 1))
    now = sum(last_of(values) or 0 for values in of_pool.values())
    return Chart(
        slug="backlog",
        title="Ready jobs by pool",
        sentence=_backlog_sentence(round(now), lines)
        if any(seen)
        else "No worker host has noted the backlog in this time.",
        starts=steps.starts,
        step=steps.range.step,
        lines=tuple(lines) or (Line("ready", (0.0 if any(seen) else None,) * len(steps.starts), "ready"),),
        write=count,
        unit="",
    )


def _backlog_sentence(now: int, lines: Sequence[Line]) -> str:
    if not any(value for line in lines for value in line.values):
        return "No job was ready whenever it was noted."
    return f"{plural(now, 'job')} ready at the last note; at most {_most(lines)}."


def _carried(values: tuple[float | None, ...], notes: Sequence[Noted], steps: Steps) -> tuple[float | None, ...]:
    """Between two notes that are no further apart than they should be, the earlier one holds."""
    reach = max(1, math.ceil(1.5 * (notes[0].seconds if notes else 0) / steps.range.step))
    found: list[float | None] = []
    last, age = None, 0
    for value in values:
        last, age = (value, 0) if value is not None else (last, age + 1)
        found.append(last if age <= reach else None)
    return tuple(found)


def _added(lines: Sequence[tuple[float | None, ...]]) -> tuple[float | None, ...]:
    return tuple(None if None in step else sum(value or 0 for value in step) for step in zip(*lines, strict=True))


def _most(lines: Sequence[Line]) -> str:
    if not lines:
        return "none"
    line = max(lines, key=lambda line: max((value or 0 for value in line.values), default=0))
    return f"{count(max(value or 0 for value in line.values))} in {line.label}"
