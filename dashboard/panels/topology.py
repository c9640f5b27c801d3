"""The topology: each pool's versions and partitions, how full each is, and whether the work is spread evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

from django.http import HttpRequest

from dashboard import reads
from dashboard.formats import plural, some
from dashboard.overall import Overall
from dashboard.paging import page_of
from dashboard.panels.base import Panel
from jobs.api import Partition

PER_PAGE = 50
"""Pools."""

CELL, GAP, PER_ROW = 20, 4, 16
SKEWED = 2.0
"""The fullest partition holds more than so many times the median: a few keys get most of the work."""

FEW = 20
"""Below so many jobs in the fullest partition nobody needs to hear of skew."""


@dataclass(frozen=True)
class Cell:
    """A partition as a square, filled from below by its share of the fullest one's jobs."""

    x: int
    y: int
    fill_y: float
    fill_height: float
    label: str


@dataclass(frozen=True)
class Version:
    """One version of a pool. ``is_newest``: new jobs go there; an older one is served until it is empty."""

    number: int
    partitions: tuple[Partition, ...]
    is_newest: bool

    @property
    def live(self) -> int:
        return sum(partition.live for partition in self.partitions)

    @property
    def ready(self) -> int:
        return sum(partition.ready for partition in self.partitions)

    @property
    def fullest(self) -> Partition:
        return max(self.partitions, key=lambda partition: partition.live)

    @property
    def skew(self) -> float:
        """The fullest partition's jobs over the median; 1 where all hold the same."""
        middle = median(partition.live for partition in self.partitions)
        return self.fullest.live / max(1.0, middle)

    @property
    def is_skewed(self) -> bool:
        return len(self.partitions) > 1 and self.fullest.live >= FEW and self.skew > SKEWED

    @property
    def words(self) -> str:
        if not self.is_newest:
            return f"draining, {plural(self.live, 'job')} left" if self.live else "empty: it can be completed"
        if self.is_skewed:
            return f"largest {self.skew:.1f} × median, partition {self.fullest.partition}"
        return "takes new jobs"

    @property
    def cells(self) -> tuple[Cell, ...]:
        most = max(1, self.fullest.live)
        return tuple(
            Cell(
                x=number % PER_ROW * (CELL + GAP) + 1,
                y=(row := number // PER_ROW * (CELL + GAP) + 1),
                fill_y=row + CELL * (1 - partition.live / most),
                fill_height=CELL * partition.live / most,
                label=f"partition {partition.partition}: {plural(partition.live, 'live job')}",
            )
            for number, partition in enumerate(self.partitions)
        )

    @property
    def width(self) -> int:
        return min(PER_ROW, len(self.partitions)) * (CELL + GAP)

    @property
    def height(self) -> int:
        return -(-len(self.partitions) // PER_ROW) * (CELL + GAP)


@dataclass(frozen=True)
class Shape:
    """A pool's versions, newest first."""

    pool: str
    versions: tuple[Version, ...]

    @property
    def needs_a_look(self) -> bool:
        """An old version drains, or the work is uneven."""
        return len(self.versions) > 1 or any(version.is_skewed for version in self.versions)


class Topology(Panel):
    slug = "topology"
    title = "Topology"
    icon = "topology"
    group = "Look back"
    key = "t"
    refresh_seconds = 5.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        shapes = by_pool(reads.topology())
        part = page_of(sorted(shapes, key=lambda shape: not shape.needs_a_look), request.GET, PER_PAGE)
        return {"total": len(shapes), "part": part, "sentence": _sentence(shapes), "cell_size": CELL}


def by_pool(partitions: Sequence[Partition]) -> list[Shape]:
    """Partitions, as they come from the engine, by pool and version."""
    shapes = []
    for pool, of_pool in groupby(partitions, key=lambda partition: partition.pool):
        versions = [
            (number, tuple(members)) for number, members in groupby(of_pool, key=lambda partition: partition.version)
        ]
        newest = max(number for number, _ in versions)
        shapes.append(Shape(pool, tuple(Version(n, p, n == newest) for n, p in sorted(versions, reverse=True))))
    return shapes


def _sentence(shapes: Sequence[Shape]) -> str:
    if not shapes:
        return ""
    versions = [version for shape in shapes for version in shape.versions]
    skewed = [shape.pool for shape in shapes if any(version.is_skewed for version in shape.versions)]
    draining = sum(not version.is_newest for version in versions)
    partitions = sum(len(version.partitions) for version in versions)
    words = f"{plural(len(shapes), 'pool')} over {plural(partitions, 'partition')}"
    if partitions == len(shapes):
        return f"{plural(len(shapes), 'pool')} of one partition{' each' if partitions > 1 else ''}."
    if skewed:
        return f"{words}; the work is uneven in {some(skewed)}."
    if draining:
        return f"{words}; {plural(draining, 'old version drains', 'old versions drain')}."
    return f"{words}, evenly filled."
