"""Workflows and runs as rows of lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.formats import count, duration
from dashboard.links import run_url
from dashboard.workflows import words
from dashboard.workflows.course import BY_PROGRESS, error_line
from jobs.core.schedule.strip import Strip, strip
from jobs.core.states import TERMINAL
from jobs.core.workflow import NodeView, RunFacts


@dataclass(frozen=True)
class RunRow:
    """A run in a list. ``usual``: seconds that runs of its workflow take, None where that is not known.

    ``failure``: its first node that failed.
    """

    run: RunFacts
    now: datetime
    usual: float | None = None
    failure: NodeView | None = None

    @property
    def url(self) -> str:
        return run_url(self.run.id)

    @property
    def shape(self) -> str:
        return words.run_shape(self.run)

    @property
    def word(self) -> str:
        return words.run_word(self.run)

    @property
    def counts(self) -> list[tuple[str, int]]:
        return [(str(state), number) for state in BY_PROGRESS if (number := self.run.counts.get(state, 0))]

    @property
    def ended(self) -> int:
        return sum(self.run.counts.get(state, 0) for state in TERMINAL)

    @property
    def took(self) -> float:
        """Seconds from its creation to its end, or until now."""
        if self.run.seconds is not None:
            return self.run.seconds
        return max(0.0, self.now.timestamp() - self.run.created_at_ms / 1000)

    @property
    def failed(self) -> str:
        """``load: ValueError: no rows``"""
        if self.failure is None:
            return ""
        why = error_line(self.failure) or self.failure.state
        return f"{self.failure.key}: {why}"

    @property
    def against(self) -> str:
        """``usually 12 s``; nothing where that is not known."""
        return f"usually {duration(self.usual)}" if self.usual else ""


TREND_WIDTH, TREND_HEIGHT = 96, 24


@dataclass(frozen=True)
class Trend:
    """How long runs took, day by day, as a line. ``label`` says the same in words."""

    path: str
    label: str


@dataclass(frozen=True)
class WorkflowRow:
    """A workflow in the list. ``view``: what ``api.workflows.definitions`` says of it."""

    view: Any

    @property
    def name(self) -> str:
        return str(self.view.name)

    @property
    def success(self) -> str:
        """``97 %``; a dash where none has ended: a rate over nothing is none."""
        return "–" if self.view.totals.success_rate is None else f"{100 * self.view.totals.success_rate:.3g} %"

    @property
    def success_of(self) -> str:
        judged = self.view.totals.succeeded + self.view.totals.failed
        return f"of {count(judged)}" if judged else ""

    @property
    def usual(self) -> float | None:
        """Seconds that a run takes which succeeds."""
        seconds: float | None = self.view.totals.median_seconds
        return seconds

    @property
    def drift(self) -> str:
        """``1.4 times slower than before``; nothing where the difference is no news."""
        slower = self.view.slower
        if slower is None or 0.8 <= slower <= 1.25:
            return ""
        return f"{slower:.2g} times slower lately" if slower > 1 else f"{1 / slower:.2g} times faster lately"

    @property
    def strip(self) -> Strip:
        usual = self.usual
        return strip(
            ((run.state, run.seconds / usual if run.seconds and usual else None) for run in reversed(self.view.last)),
            "run",
        )

    @property
    def last(self) -> Any:
        """Its newest run that has ended, None where none has."""
        return self.view.last[0] if self.view.last else None

    @property
    def last_shape(self) -> str:
        return words.SHAPES.get(self.last.state, "scheduled")

    @property
    def trend(self) -> Trend | None:
        """None where there are not at least two days to compare."""
        days = [day.totals.median_seconds for day in self.view.trend if day.totals.median_seconds is not None]
        if len(days) < 2:
            return None
        longest, step = max(days) or 1.0, (TREND_WIDTH - 4) / (len(days) - 1)
        points = (
            f"{2 + number * step:.1f} {TREND_HEIGHT - 3 - (TREND_HEIGHT - 6) * seconds / longest:.1f}"
            for number, seconds in enumerate(days)
        )
        first, last, most = (duration(seconds) for seconds in (days[0], days[-1], max(days)))
        label = f"Usual time by day: {first} at first, {last} at last, {most} at most"
        return Trend("M" + "L".join(points), label)
