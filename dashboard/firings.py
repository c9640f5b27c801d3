"""Schedules and their firings as the pages show them: one word for how each stands, one shape for each outcome."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any

from dashboard.formats import duration
from jobs.api.schedules import FiringView, ScheduleStatus, state_word
from jobs.core.schedule import Window, zone_named
from jobs.core.schedule.strip import Strip, strip
from jobs.exceptions import SchedulerError

LATE_SECONDS = 5.0
"""A firing that was created later than this after its time is shown as late."""

STRIP = 24
"""Firings in the strip of a list."""

OUTCOMES = {
    "succeeded": ("succeeded", "succeeded"),
    "failed": ("dead", "died"),
    "cancelled": ("cancelled", "cancelled"),
    "running": ("leased", "running"),
    "waiting": ("ready", "waits"),
    "skipped": ("skipped", "skipped"),
    "fired": ("scheduled", "fired"),
}
"""Outcome → shape and word."""

PENDING = {"running", "waiting"}


@dataclass(frozen=True)
class Fired:
    """One entry of a schedule's history."""

    view: FiringView

    @property
    def at(self) -> datetime:
        return self.view.due_at

    @property
    def job_id(self) -> str | None:
        return self.view.job_id

    @property
    def shape(self) -> str:
        return OUTCOMES[self.view.outcome][0]

    @property
    def word(self) -> str:
        word = OUTCOMES[self.view.outcome][1]
        return word if self.view.count == 1 else f"{self.view.count or 'many'} {word}"

    @property
    def late(self) -> float | None:
        return None if self.view.outcome == "skipped" or self.view.by else max(0.0, self.view.lateness_seconds)

    @property
    def is_late(self) -> bool:
        return self.late is not None and self.late > LATE_SECONDS

    @property
    def took(self) -> float | None:
        return self.view.run_seconds

    @property
    def reason(self) -> str:
        return f"{self.view.reason}, by {self.view.by}" if self.view.by else self.view.reason


@dataclass(frozen=True)
class Line:
    """One schedule: its row and how it stands. ``row`` is what ``api.schedules.get`` gives."""

    row: Any
    status: ScheduleStatus
    now: datetime

    @property
    def name(self) -> str:
        return str(self.row.name)

    @cached_property
    def words(self) -> str:
        """When it fires; of one that cannot be understood, its state says why."""
        try:
            return str(self.row.rule().describe())
        except SchedulerError:
            return "never"

    @cached_property
    def next_at(self) -> datetime | None:
        """As the store has it; where that does not know it yet, as its rule says."""
        if self.status.next_at is not None or not self.row.enabled:
            return self.status.next_at
        try:
            return next(self.window.firings(self.row.rule(), self.now), None)
        except SchedulerError:
            return None

    @property
    def window(self) -> Window:
        """Where in time it may still fire."""
        left = None if self.row.max_firings is None else max(0, self.row.max_firings - self.status.fired)
        return Window(starts_at=self.row.starts_at, ends_at=self.row.ends_at, firings_left=left)

    @property
    def expression(self) -> str:
        return self.row.cron if self.row.kind == "cron" else ""

    @property
    def error(self) -> str:
        return self.status.error or self.row.error

    @property
    def mark(self) -> str:
        """The icon of its state: trouble, a pause, or none."""
        if self.row.is_paused:
            return "pause"
        return "warning" if self.error or self.status.late_seconds is not None else ""

    @property
    def word(self) -> str:
        return state_word(self.row, self.status)

    @property
    def detail(self) -> str:
        if self.row.is_paused:
            return f"by {self.row.paused_by or 'somebody'}: {self.row.paused_reason}".removesuffix(": ")
        if self.error:
            return self.error
        if self.status.late_seconds is not None:
            return f"by {duration(self.status.late_seconds)}: {self.status.late_why}"
        return "waits until the job before it has ended" if self.status.waiting_for else ""

    @property
    def last(self) -> Fired | None:
        return Fired(self.status.last) if self.status.last else None

    @property
    def has_failed(self) -> bool:
        """Whether its newest firing came to nothing: its job died, or could not be made."""
        return bool(self.error) or (self.status.last is not None and self.status.last.outcome == "failed")

    @property
    def firings(self) -> list[Fired]:
        return [Fired(view) for view in self.status.firings]

    @property
    def strip(self) -> Strip:
        usual = self.status.usual_seconds
        return strip(
            (
                "pending" if view.outcome in PENDING else view.outcome,
                view.run_seconds / usual if view.run_seconds is not None and usual else None,
            )
            for view in reversed(self.status.firings[:STRIP])
        )

    @property
    def zone(self) -> tzinfo:
        try:
            return zone_named(self.row.timezone)
        except SchedulerError:
            return UTC

    @property
    def next_local(self) -> str:
        """The next firing on the clock of its zone: ``Mon 02:30:00 CET``."""
        return f"{self.next_at.astimezone(self.zone):%a %H:%M:%S %Z}" if self.next_at else ""

    @property
    def actions(self) -> tuple[str, ...]:
        """What may be done to it, in the order of the buttons."""
        return "schedule.run", "schedule.resume" if self.row.is_paused else "schedule.pause"


def troubled_first(rows: Collection[Any], late: Collection[str]) -> list[Any]:
    """Late ones, then those that cannot fire, then paused ones, then the rest; by name in each."""
    return sorted(rows, key=lambda row: (row.name not in late, not row.error, not row.is_paused, row.name))
