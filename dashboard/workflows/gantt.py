"""A run on a line of time: one row for each box of its picture, in the order in which they began."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dashboard.formats import duration
from dashboard.workflows.course import BY_TROUBLE, Course
from dashboard.workflows.faces import stack_words
from jobs.core.workflow import Box, Fold, Span

THINNEST = 0.4
"""Per cent of the line that a bar has at least, so that it can be seen."""


@dataclass(frozen=True)
class Bar:
    """A stretch of a row, in per cent of the line. ``kind``: wait, run, or both for a stack of nodes."""

    kind: str
    left: float
    width: float


@dataclass(frozen=True)
class Row:
    key: str
    name: str
    state: str
    line: str
    bars: tuple[Bar, ...]
    is_critical: bool
    label: str


@dataclass(frozen=True)
class Gantt:
    """``waiting``: so many nodes have not been released, or never were, and have no row."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    folds: tuple[Fold, ...]
    waiting: int

    @property
    def folded(self) -> str:
        """``2 idle stretches of 3 h in all are folded``"""
        if not self.folds:
            return ""
        total = duration(sum(fold.ms for fold in self.folds) / 1000)
        if len(self.folds) == 1:
            return f"{total} in which nothing ran is folded"
        return f"{len(self.folds)} stretches, {total} in all, in which nothing ran are folded"


def gantt(course: Course) -> Gantt:
    """The rows, and the marks of the line above them."""
    rows: list[tuple[int, Row]] = []
    shown = 0
    for placed in course.layout.boxes:
        first = min((at for key in placed.box.nodes if (at := course.spans[key].first) is not None), default=None)
        ran = [key for key in placed.box.nodes if course.spans[key].released or course.spans[key].started]
        if first is not None and ran:
            rows.append((first, _row(course, placed.box)))
            shown += len(ran)
    rows.sort(key=lambda row: row[0])
    ticks = tuple((tick.left, duration(tick.ms / 1000) if tick.ms else "0") for tick in course.axis.ticks())
    return Gantt(tuple(row for _, row in rows), ticks, course.axis.folds, len(course.graph) - shown)


def _row(course: Course, box: Box) -> Row:
    is_critical = any(key in course.critical for key in box.nodes)
    if not box.is_stack:
        step = course.step(box.key)
        bars = tuple(_bars(course, step.span))
        waited = f", after {duration(step.waited)} of waiting" if step.waited and step.waited >= 1 else ""
        label = f"{step.key}: {step.line}{waited}{', on the critical path' if is_critical else ''}"
        return Row(step.key, step.key, str(step.state), step.line, bars, is_critical, label)
    counts = Counter(course.states[key] for key in box.nodes)
    spans = [course.spans[key] for key in box.nodes]
    known = [span for span in spans if span.first is not None]
    whole = Span(
        started=min(span.first or 0 for span in known),
        ended=None if any(span.ended is None for span in known) else max(span.ended or 0 for span in known),
    )
    bars = tuple(Bar("both", bar.left, bar.width) for bar in _bars(course, whole))
    state = str(next(state for state in BY_TROUBLE if counts[state]))
    name = f"{box.name} ×{len(box.nodes):,}"
    line = stack_words(counts)
    return Row(box.key, name, state, line, bars, is_critical, f"{name}: {line}")


def _bars(course: Course, span: Span) -> list[Bar]:
    end = course.axis.end if span.ended is None else span.ended
    bars = []
    if span.released is not None and (span.started is None or span.started > span.released):
        bars.append(_bar(course, "wait", span.released, span.started if span.started is not None else end))
    if span.started is not None:
        bars.append(_bar(course, "run", span.started, end))
    return bars


def _bar(course: Course, kind: str, begin: int, end: int) -> Bar:
    left = course.axis.place(begin)
    width = max(THINNEST, course.axis.place(end) - left)
    return Bar(kind, round(min(left, 100 - width), 2), round(width, 2))
