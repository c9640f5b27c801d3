"""Schedules, how they stand, and what will fire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.kept import Kept
from dashboard.reads.whole import asking
from jobs import api
from jobs.api.reach import Reach
from jobs.api.schedule_history import Entry, history
from jobs.api.schedules import Forecast, ScheduleStatus

FORECAST_EVERY_SECONDS = 30.0
"""So often it is computed what will fire: it asks every schedule."""

_forecast: Kept[Forecast] = Kept(FORECAST_EVERY_SECONDS)


def forget() -> None:
    _forecast.forget()


def schedules() -> Sequence[Any]:
    """All rows of schedules, by name. They are in the database, and need no store."""
    return api.schedules.list()


def schedules_named(names: Sequence[str]) -> Sequence[Any]:
    """The rows of these schedules, of those that there are."""
    return api.schedules.named(names)


def schedule(name: str) -> Any:
    """The row of one schedule, or ScheduleNotFound."""
    return api.schedules.get(name)


def reach_of_schedules(names: Sequence[str]) -> Reach:
    """The pools that their jobs, or the runs that they start, go to."""
    with asking():
        return api.schedules.reach_of(names)


def schedule_changes(row: Any, most: int) -> list[Entry]:
    """What was changed in a schedule, newest first, with secrets masked. It is in the database, and needs no store."""
    return history(row, most)


def schedule_status(names: Sequence[str], firings: int) -> dict[str, ScheduleStatus]:
    """How these schedules stand, with so many of their last firings each."""
    with asking():
        return api.schedules.status(names, firings)


def next_to_fire(most: int) -> list[str]:
    """The schedules that fire next, by name."""
    with asking():
        return api.schedules.next_to_fire(most)


def forecast(*, wait: bool = True) -> Forecast | None:
    """What will fire in the next 24 hours, as it was seen lately. Without ``wait`` only what is known already."""
    if not wait:
        return _forecast.last
    with asking():
        return _forecast.read(api.schedules.forecast)
