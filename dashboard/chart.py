"""A chart as its template writes it: an SVG that the server draws, labels at the ends of lines, a sentence, a table.

The script of a page draws the same numbers again with a cursor; without it, and in print, the server's drawing stays.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone

from dashboard.formats import clock, count, shortened

WIDTH, HEIGHT, DEATHS = 600, 150, 44
_PLAIN = re.compile(r"\.0(?!\d)")  # ``3.0`` → ``3``, ``1.0 s`` → ``1 s``
DAYS_FROM = 1200
"""Seconds of a step from which on a chart reaches back further than a clock tells."""

GRID_LINES = 3
LABEL_GAP = 15.0
"""Between two labels at the ends of lines, in the units of HEIGHT."""


LABEL_FOOT = 9.0
"""From the middle of the lowest label to the edge of the chart: letters like g hang below their line."""

LABEL_MAX = 14
"""Characters of what a line is called that have room at its end; the table has them all."""


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

    @property
    def place(self) -> float:
        """Percent of the height."""
        return 100 * self.y / HEIGHT


@dataclass(frozen=True)
class Mark:
    """A deploy at ``place`` percent of the width; ``label`` is empty where it would stand over another."""

    place: float
    name: str
    label: str = ""

    @property
    def is_late(self) -> bool:
        """So far to the right that its label stands on its left."""
        return self.place > 70


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
    marks: tuple[Mark, ...] = ()
    is_of_time: bool = False  # values are seconds, and grid lines lie where people count them

    @property
    def top(self) -> float:
        most = max((value for line in self.lines for value in line.values if value is not None), default=0)
        return round_up_seconds(most) if self.is_of_time else round_up(most)

    @property
    def is_empty(self) -> bool:
        return not any(value for line in self.lines for value in line.values) and not any(self.deaths)

    @property
    def scale(self) -> list[str]:
        """Labels of the grid lines, top first."""
        steps = [self.top * (GRID_LINES - number) / GRID_LINES for number in range(GRID_LINES + 1)]
        return [_PLAIN.sub("", self.write(value)) if value else "0" for value in steps]

    @property
    def times(self) -> list[str]:
        """Labels of the axis: five moments, as fine as the range needs, and short enough to stand beside each other."""
        marks = [self.starts[round(number * (len(self.starts) - 1) / 4)] for number in range(5)]
        if self.step < DAYS_FROM:
            return [self._at(at) for at in marks]
        days = [f"{local.day} {local:%b}" for local in map(timezone.localtime, marks)]
        if marks[-1] - marks[0] > timedelta(days=3):
            return days
        return [
            clock(at)[:5] if day == before else f"{day}, {clock(at)[:5]}"
            for at, day, before in zip(marks, days, ["", *days], strict=False)
        ]

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
        ends = [(line, value) for line in self.lines if (value := last_of(line.values)) is not None]
        ends.sort(key=lambda end: -end[1])
        placed = _spread([HEIGHT * (1 - value / self.top) for _, value in ends])
        return [
            Label(y, f"{shortened(line.label, LABEL_MAX)} {self.write(value)}{self.unit}", line.mark)
            for y, (line, value) in zip(placed, ends, strict=True)
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
        return [(self._at(at), list(cells)) for at, cells in zip(self.starts, zip(*columns, strict=True), strict=True)][
            ::-1
        ]

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
        if self.step < DAYS_FROM:
            return clock(at)[: 8 if self.step < 60 else 5]
        return f"{local.day} {local:%b}, {local:%H:%M}" if self.step < 28_800 else f"{local.day} {local:%b %H:%M}"


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


def last_of(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _spread(wanted: Sequence[float]) -> list[float]:
    """The same places in the same order, none nearer to another than a label is high, none outside of the chart."""
    placed: list[float] = []
    for y in wanted:
        placed.append(max(y, placed[-1] + LABEL_GAP) if placed else max(y, 6.0))
    overflow = placed[-1] - (HEIGHT - LABEL_FOOT) if placed else 0
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


_SECONDS = tuple(
    step * unit
    for unit, steps in (
        (0.001, (3, 6, 15, 30, 60, 150, 300, 600)),
        (1.0, (1.5, 3, 6, 15, 30, 45)),
        (60.0, (1, 3, 6, 15, 30, 45)),
        (3600.0, (1, 3, 6, 12, 24, 36, 72)),
    )
    for step in steps
)
"""Lengths of time whose thirds are plain: 50 ms, 2 s, 10 min, 4 h."""


def round_up_seconds(value: float) -> float:
    """The next length of time that three steps divide into plain ones; whole triples of days beyond three days."""
    found = next((length for length in _SECONDS if value <= length), None)
    return found if found is not None else math.ceil(value / 259_200) * 259_200
