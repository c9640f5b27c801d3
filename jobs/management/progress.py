"""Shows how far a long operation is: nothing for two seconds, then a bar on a terminal, or now and then a line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from jobs.core.wording import visible
from jobs.management.durations import spoken

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

AFTER_SECONDS = 2.0
"""What is done sooner than this needs no display."""
LINE_EVERY_SECONDS = 5.0
"""How often a line is written where no bar can be drawn."""
RATE_AFTER_SECONDS = 0.5
"""A rate measured over less than this says nothing."""


class Display:
    """One operation. ``step`` says how far it is; a thread shows it, also while nothing is heard for a while."""

    def __init__(self, what: str, total: float | None, *, console: Console | None, line: Callable[[str], None]) -> None:
        """``console``: where a bar can be drawn, or None; ``line`` then writes a line."""
        self._what = what
        self._total = total
        self._console = console
        self._line = line
        self._done = 0.0
        self._note = ""
        self._began = monotonic()
        self._first: tuple[float, float] | None = None  # moment and count of the first step
        self._bar: Progress | None = None
        self._over = threading.Event()
        self._shown = threading.Thread(target=self._show, daemon=True)
        self._shown.start()

    def step(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """``done`` so far, of ``total`` (once it is known); ``note`` is a word about now."""
        self._done, self._note = done, note
        self._total = self._total if total is None else total
        self._first = self._first or (monotonic(), done)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=self._total, facts=self.facts())

    def close(self) -> None:
        self._over.set()
        self._shown.join()
        if self._bar is not None:
            self._bar.stop()

    def facts(self) -> str:
        """``212 of 5,041, 37/s, 2m 10s left``, or how long it has taken where there is nothing to count."""
        now = monotonic()
        if self._total is None:
            facts = [spoken(timedelta(seconds=round(now - self._began)))]
        else:
            facts = [f"{self._done:,.0f} of {self._total:,.0f}"]
            if rate := self._rate(now):
                left = timedelta(seconds=max(0.0, self._total - self._done) / rate)
                facts += [f"{rate:,.0f}/s" if rate >= 1 else f"{rate:.1g}/s", f"{spoken(left)} left"]
        return visible(", ".join([*facts, self._note] if self._note else facts))

    def _rate(self, now: float) -> float:
        """Per second since the first step: what came before it (a count, a search) was other work."""
        if self._first is None or now - self._first[0] < RATE_AFTER_SECONDS:
            return 0.0
        return (self._done - self._first[1]) / (now - self._first[0])

    def _show(self) -> None:
        if self._over.wait(AFTER_SECONDS):
            return
        if self._console is not None:
            self._bar = self._draw(self._console)
            return
        self._line(f"{self._what}: {self.facts()}")
        while not self._over.wait(LINE_EVERY_SECONDS):
            self._line(f"{self._what}: {self.facts()}")

    def _draw(self, console: Console) -> Progress:
        from rich.progress import BarColumn, Progress, TextColumn

        words, facts = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[facts]"))
        bar = Progress(words, BarColumn(), facts, console=console, transient=True)
        bar.add_task(self._what, total=self._total, completed=int(self._done), facts=self.facts())
        bar.start()
        return bar
