"""What happened over a time, as charts: numbers for an SVG that the server draws, a sentence, and a table.

All charts of a page share one range, which is in its address. The script of the page draws the same numbers again with a
cursor; without it, and in print, the server's drawing stays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from django.utils import timezone

from dashboard.formats import clock, count, duration, plural, rate
from jobs.api import Noted, Point
from jobs.core.figures import Figures

WIDTH, HEIGHT, DEATHS, LABELS = 600, 150, 44, 124
GRID_LINES = 3
LABEL_GAP = 15.0
"""Between two labels at the ends of lines, in the units of HEIGHT."""

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


def range_named(name: str) -> Range:
    """The range of an address; the usual one where that names none."""
    return RANGES.get(name, RANGES[DEFAULT])


@dataclass(frozen=True)
class Line:
    """One line of a chart. ``mark``: the state whose colour it has, or ``""``; ``dash``: which pattern it has."""

    label: str
    values: tuple[float | None, ...]  # None: not known, which is a gap
    mark: str = ""
    dash: int = 0


@dataclass(frozen=True)
class Label:
    y: float
    text: str
    mark: str


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    height: float


@dataclass(frozen=True)
class Chart:
    """A chart with everything that its template writes."""

    slug: str
    title: str
    sentence: str
    starts: tuple[datetime, ...]  # of its steps
    step: int
    lines: tuple[Line, ...]
    write: Callable[[float | None], str]  # a value as people read it
    unit: str
    deaths: tuple[int, ...] = ()
    area: bool = False  # the first line stands on a ground of its colour
    note: str = ""  # what the chart leaves out

    @property
    def top(self) -> float:
        return round_up(max((value for line in self.lines for value in line.values if value is not None), default=0))

    @property
    def is_empty(self) -> bool:
        return not any(value for line in self.lines for value in line.values) and not any(self.deaths)

    @property
    def scale(self) -> list[str]:
        """Labels of the grid lines, top first."""
        return [self.write(self.top * (GRID_LINES - number) / GRID_LINES) for number in range(GRID_LINES + 1)]

    @property
    def times(self) -> list[str]:
        """Labels of the axis: five moments, as fine as the range needs."""
        marks = [self.starts[round(number * (len(self.starts) - 1) / 4)] for number in range(5)]
        return [self._at(at) for at in marks]

    @property
    def paths(self) -> list[tuple[Line, str]]:
        return [(line, _path(line.values, self.top)) for line in self.lines]

    @property
    def ground(self) -> str:
        """The area under the first line; nothing where it has gaps."""
        values = self.lines[0].values
        return f"{_path(values, self.top)}L{WIDTH},{HEIGHT}L0,{HEIGHT}Z" if self.area and None not in values else ""

    @property
    def labels(self) -> list[Label]:
        """What each line is and how it stands now, at its end, none over another."""
        ends = [(line, _last(line.values)) for line in self.lines]
        wanted = sorted(
            (HEIGHT * (1 - (value or 0) / self.top), line, value) for line, value in ends if value is not None
        ) if self.top else []
        placed = _spread([y for y, _, _ in wanted])
        return [
            Label(y, f"{line.label} {self.write(value)}{self.unit}", line.mark)
            for y, (_, line, value) in zip(placed, wanted, strict=True)
        ]

    @property
    def bars(self) -> list[Bar]:
        width, most = WIDTH / len(self.deaths), max(self.deaths)
        return [
            Bar(number * width, DEATHS - (DEATHS - 2) * value / most, (DEATHS - 2) * value / most)
            for number, value in enumerate(self.deaths)
            if value
        ]

    @property
    def bar_width(self) -> float:
        return WIDTH / len(self.starts) * 0.8

    @property
    def died(self) -> str:
        return count(sum(self.deaths))

    @property
    def head(self) -> list[str]:
        """Titles of the table's columns after the first."""
        return [f"{line.label}{f', {self.unit.strip()}' if self.unit else ''}" for line in self.lines] + (
            ["died"] if self.deaths else []
        )

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The same as a table, newest first."""
        columns = [[self.write(value) for value in line.values] for line in self.lines]
        columns += [[count(number) for number in self.deaths]] if self.deaths else []
        return [
            (self._at(at), list(cells)) for at, cells in zip(self.starts, zip(*columns, strict=True), strict=True)
        ][::-1]

    @property
    def data(self) -> str:
        """The numbers for the page's script, as JSON."""
        return json.dumps(
            {
                "title": self.title,
                "unit": self.unit,
                "at": [at.timestamp() for at in self.starts],
                "top": self.top,
                "lines": [
                    {
                        "label": line.label,
                        "mark": line.mark,
                        "dash": line.dash,
                        "values": line.values,
                        "texts": [self.write(value) for value in line.values],
                    }
                    for line in self.lines
                ],
                "times": [self._at(at) for at in self.starts],
            },
            separators=(",", ":"),
        )

    def _at(self, at: datetime) -> str:
        local = timezone.localtime(at)
        if self.step < 1200:
            return clock(at)[: 8 if self.step < 60 else 5]
        return f"{local.day} {local:%b}, {local:%H:%M}" if self.step < 28_800 else f"{local.day} {local:%b %H:%M}"


# What the charts are of ----------------------------------------------------------------------------------------------


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


BUCKET = 10
"""Seconds of the finest figures there are."""


def throughput(steps: Steps) -> Chart:
    """Jobs that came and jobs that succeeded per second, with deaths on a track of their own."""
    done, new, deaths = steps.counts("succeeded"), steps.counts("enqueued"), steps.counts("dead")
    return Chart(
        slug="throughput",
        title="Jobs per second",
        sentence=f"{plural(sum(done), 'job')} succeeded and {count(sum(deaths))} died {steps.span}.",
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
    )


def failures(steps: Steps) -> Chart:
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
        starts=steps.starts,
        step=steps.range.step,
        lines=tuple(
            Line(label, tuple(number * 60 / steps.range.step for number in steps.counts(name)), mark, dash)
            for name, label, mark, dash in names
        ),
        write=rate,
        unit="/min",
    )


def waits(steps: Steps) -> Chart:
    """How long jobs were ready before they were taken."""
    return _percentiles("wait", "Wait", "waited", steps, "ready")


def runs(steps: Steps) -> Chart:
    """How long attempts that succeeded ran."""
    return _percentiles("run", "Run time", "ran", steps, "leased")


def _percentiles(what: str, title: str, verb: str, steps: Steps, mark: str) -> Chart:
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
    )


def backlog(notes: Sequence[Noted], steps: Steps, pool: str = "") -> Chart:
    """Ready jobs by pool: those with most of them each, the others together."""
    sums: list[dict[str, list[int]]] = [{} for _ in steps.starts]
    seen = [0] * len(steps.starts)
    for note in notes:
        if (place := steps.place(note.at)) is None:
            continue
        seen[place] += 1
        for name, ready in note.ready.items():
            sums[place].setdefault(name, []).append(ready)
    of_pool = {
        name: tuple(sum(step.get(name, ())) / number if number else None for step, number in zip(sums, seen, strict=True))
        for name in sorted({name for step in sums for name in step} if not pool else {pool})
    }
    of_pool = {name: _carried(values, notes, steps) for name, values in of_pool.items()}
    largest = sorted(of_pool, key=lambda name: -max((value or 0 for value in of_pool[name]), default=0))
    shown, rest = largest[:POOLS_SHOWN], largest[POOLS_SHOWN:]
    lines = [Line(name, of_pool[name], "ready", dash) for dash, name in enumerate(shown)]
    if rest:
        lines.append(Line(plural(len(rest), "other pool"), _added([of_pool[name] for name in rest]), "", 1))
    now = sum(_last(values) or 0 for values in of_pool.values())
    return Chart(
        slug="backlog",
        title="Ready jobs by pool",
        sentence=f"{plural(round(now), 'job')} ready at the last note; at most {_most(lines)}."
        if any(seen)
        else "No worker host has noted the backlog in this time.",
        starts=steps.starts,
        step=steps.range.step,
        lines=tuple(lines) or (Line("ready", (0.0 if any(seen) else None,) * len(steps.starts), "ready"),),
        write=count,
        unit="",
    )


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


# Drawing -------------------------------------------------------------------------------------------------------------


def _path(values: Sequence[float | None], top: float) -> str:
    """A line over the whole width; what is not known is left out."""
    width = WIDTH / max(1, len(values) - 1)
    drawn, parts = False, []
    for place, value in enumerate(values):
        if value is not None:
            y = HEIGHT * (1 - value / top) if top else HEIGHT
            parts.append(f"{'L' if drawn else 'M'}{place * width:.1f},{y:.1f}")
            if not drawn and (place + 1 == len(values) or values[place + 1] is None):
                parts.append("h2")  # one that stands alone would not be seen
        drawn = value is not None
    return "".join(parts)


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _spread(wanted: Sequence[float]) -> list[float]:
    """The same places in the same order, none nearer to another than a label is high, none outside of the chart."""
    placed: list[float] = []
    for y in wanted:
        placed.append(max(y, placed[-1] + LABEL_GAP) if placed else max(y, 6.0))
    overflow = placed[-1] - (HEIGHT - 2) if placed else 0
    if overflow > 0:
        placed[-1] -= overflow
        for later, earlier in pairwise(range(len(placed) - 1, -1, -1)):
            placed[earlier] = min(placed[earlier], placed[later] - LABEL_GAP)
    return placed


def round_up(value: float) -> float:
    """The next of 1.5, 3, 6, 9 times a power of ten: the grid's three steps divide it into plain labels."""
    power = 0.01
    while True:
        for step in (1.5, 3, 6, 9):
            if value <= step * power:
                return step * power
        power *= 10


def spark(values: Sequence[float], width: int = 120, height: int = 26) -> str:
    """A small line as a path: evidence beside a sentence. Empty where there is nothing to see."""
    top = max(values, default=0)
    if not top or len(values) < 2:
        return ""
    step = width / (len(values) - 1)
    return "M" + "L".join(f"{place * step:.1f},{height - (height - 2) * value / top:.1f}" for place, value in enumerate(values))


__all__ = ["DEFAULT", "RANGES", "Chart", "Range", "Steps", "backlog", "failures", "range_named", "runs", "spark", "throughput", "waits"]
