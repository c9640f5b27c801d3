"""How a run went in time: which of its nodes its length was made of, and where a moment stands on a line.

Moments are milliseconds since the epoch. Nothing here knows how a run is stored or drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from jobs.core.workflow.graph import Graph

IDLE_MS = 10_000
"""A stretch in which nothing runs may be folded from this length on."""

FOLDED_SHARE = 4.0
"""Per cent of the line that a folded stretch keeps, where they are few."""

_MOST_FOLDED = 40.0  # per cent of the line for all folded stretches together
_TICKS = 6
_STEPS = tuple(
    seconds * 1_000
    for seconds in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
                    1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
)  # fmt: skip


@dataclass(frozen=True)
class Span:
    """When a node was released, when its job began, and when it ended; None: not yet, or never."""

    released: int | None = None
    started: int | None = None
    ended: int | None = None

    @property
    def first(self) -> int | None:
        """The first that is known of it."""
        return min((at for at in (self.released, self.started, self.ended) if at is not None), default=None)


def critical_path(graph: Graph, spans: Mapping[str, Span]) -> tuple[str, ...]:
    """The nodes that the run's length was made of, first to last: from the one that ended last (or still goes on since
    longest) back, each time to the parent whose end released it. A shorter node elsewhere makes no run shorter.
    """
    known = {key: span for key, span in spans.items() if key in graph.nodes and span.first is not None}
    path: list[str] = []
    key = max(known, key=lambda key: (_end(known[key]), -(known[key].first or 0)), default=None)
    while key is not None:
        path.append(key)
        key = _released_by(graph, known, key)
    return tuple(reversed(path))


def _released_by(graph: Graph, spans: Mapping[str, Span], key: str) -> str | None:
    """The parent that ended last before the node was released; the first to end where clocks disagree."""
    began = spans[key].first or 0
    ended = {parent: _end(spans[parent]) for parent in graph.parents[key] if parent in spans}
    before = [parent for parent, at in ended.items() if at <= began]
    if before:
        return max(before, key=ended.__getitem__)
    return min((parent for parent, at in ended.items() if at < inf), key=ended.__getitem__, default=None)


def _end(span: Span) -> float:
    return inf if span.ended is None else span.ended


@dataclass(frozen=True)
class Fold:
    """A stretch of the line, in per cent, that stands for a longer time in which nothing ran."""

    left: float
    width: float
    ms: int


@dataclass(frozen=True)
class Tick:
    """A mark on the line: where, and how long after its beginning."""

    left: float
    ms: int


@dataclass(frozen=True)
class Axis:
    """A line of time from the first moment to the last, long idle stretches folded. Places on it are per cent."""

    begin: int
    end: int
    folds: tuple[Fold, ...] = ()
    _at: tuple[int, ...] = field(default=(), repr=False)
    _left: tuple[float, ...] = field(default=(), repr=False)

    def place(self, at: int) -> float:
        """Where a moment stands: 0 to 100."""
        if at <= self.begin:
            return 0.0
        if at >= self.end:
            return 100.0
        knot = bisect_right(self._at, at) - 1
        share = (at - self._at[knot]) / (self._at[knot + 1] - self._at[knot])
        return self._left[knot] + share * (self._left[knot + 1] - self._left[knot])

    def ticks(self) -> tuple[Tick, ...]:
        """Marks at round times after the beginning, about six of them, none within a fold or close behind another."""
        shown = self.end - self.begin - sum(fold.ms for fold in self.folds)
        step = next((step for step in _STEPS if shown / step <= _TICKS), max(_STEPS[-1], shown / _TICKS))
        return tuple(self._ticks(step))

    def _ticks(self, step: float) -> Iterator[Tick]:
        last = -inf
        for left, right in self._shown():
            number = -(-(left - self.begin) // step)
            while self.begin + number * step <= right:
                ms = round(number * step)
                place = self.place(self.begin + ms)
                if place - last >= 100 / (_TICKS + 4):
                    yield Tick(place, ms)
                    last = place
                number += 1

    def _shown(self) -> Iterator[tuple[int, int]]:
        """The stretches that are not folded."""
        folded = {fold.left for fold in self.folds}
        for number, left in enumerate(self._left[:-1]):
            if left not in folded:
                yield self._at[number], self._at[number + 1]


def axis(spans: Iterable[Span], now: int) -> Axis:
    """The line for these nodes. What goes on still lasts until ``now``."""
    known = [(first, span) for span in spans if (first := span.first) is not None]
    if not known:
        return Axis(now, now, (), (now, now), (0.0, 100.0))
    begin = min(first for first, _ in known)
    end = max(begin + 1, *(max(now, first) if span.ended is None else span.ended for first, span in known))
    ran = [(span.started, end if span.ended is None else span.ended) for _, span in known if span.started is not None]
    idle = list(_idle(begin, end, ran))
    busy = end - begin - sum(right - left for left, right in idle)
    # Where nothing has run yet, the waiting is all there is to see.
    return _axis(begin, end, [(left, right) for left, right in idle if busy and right - left >= max(IDLE_MS, busy)])


def _idle(begin: int, end: int, ran: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The stretches in which nothing ran."""
    until = begin
    for started, ended in sorted(ran):
        if started > until:
            yield until, started
        until = max(until, ended)
    if end > until:
        yield until, end


def _axis(begin: int, end: int, folded: list[tuple[int, int]]) -> Axis:
    share = min(FOLDED_SHARE, _MOST_FOLDED / len(folded)) if folded else 0.0
    shown = end - begin - sum(right - left for left, right in folded)
    per_ms = (100 - share * len(folded)) / shown if shown else 0.0
    at, left, folds = [begin], [0.0], []
    for start, stop in folded:
        if start > at[-1]:
            left.append(left[-1] + (start - at[-1]) * per_ms)
            at.append(start)
        folds.append(Fold(left[-1], share, stop - start))
        left.append(left[-1] + share)
        at.append(stop)
    if end > at[-1]:
        at.append(end)
        left.append(100.0)
    return Axis(begin, end, tuple(folds), tuple(at), tuple(left))
