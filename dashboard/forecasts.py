"""The firings to come as a chart: numbers for an SVG that the server draws, readable without script, and in print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.chart import GRID_LINES, WIDTH, round_up
from dashboard.formats import clock, count, plural
from jobs.api.forecast import Forecast, ForecastMinute

FORECAST_HEIGHT = 96
CROWDS_SHOWN = 6


@dataclass(frozen=True)
class Firings:
    """How many jobs schedules will make in each minute, as bars, as a table by the hour, and its crowds by name."""

    bars: str  # one path over all minutes in which anything fires
    capacity: float | None  # where the line of what all workers run in a minute lies; None: unknown or off the chart
    scale: tuple[str, ...]
    times: tuple[str, ...]
    sentence: str
    capacities: str
    hours: tuple[tuple[str, int, int], ...]  # hour, firings in it, firings in its fullest minute
    crowds: tuple[ForecastMinute, ...]
    crowds_more: int


def firings(forecast: Forecast) -> Firings | None:
    """The chart of what will fire; None when nothing does."""
    if not forecast.minutes:
        return None
    fullest = max(forecast.minutes, key=lambda minute: minute.count)
    top, span = round_up(fullest.count), (forecast.end - forecast.start).total_seconds()
    capacity = _all_capacity(forecast)
    crowds = sorted(forecast.crowded, key=lambda minute: -minute.count)
    quarters = [forecast.start + (forecast.end - forecast.start) * number / 4 for number in range(5)]
    return Firings(
        bars="".join(_bar(minute, forecast.start, span, top) for minute in forecast.minutes),
        capacity=FORECAST_HEIGHT * (1 - capacity / top) if capacity is not None and capacity <= top else None,
        scale=tuple(f"{top * (GRID_LINES - number) / GRID_LINES:g}" for number in range(GRID_LINES + 1)),
        times=tuple(clock(at)[:5] for at in quarters),
        sentence=(
            f"{plural(forecast.total, 'firing')} in the next {round(span / 3600)} hours, "
            f"at most {plural(fullest.count, 'job')} in one minute, at {clock(fullest.at)[:5]}."
        ),
        capacities=_capacities(forecast),
        hours=_by_hour(forecast.minutes),
        crowds=tuple(sorted(crowds[:CROWDS_SHOWN], key=lambda minute: minute.at)),
        crowds_more=max(0, len(crowds) - CROWDS_SHOWN),
    )


def _bar(minute: ForecastMinute, start: datetime, span: float, top: float) -> str:
    x = (minute.at - start).total_seconds() / span * WIDTH
    return f"M{x:.2f} {FORECAST_HEIGHT}v{-max(1.0, FORECAST_HEIGHT * minute.count / top):.1f}"


def _all_capacity(forecast: Forecast) -> float | None:
    known = [capacity for capacity in forecast.capacity.values() if capacity is not None]
    return sum(known) if known and len(known) == len(forecast.capacity) else None


def _capacities(forecast: Forecast) -> str:
    known = {pool: capacity for pool, capacity in forecast.capacity.items() if capacity is not None}
    said = ", ".join(f"pool {pool} runs about {count(capacity)}" for pool, capacity in known.items())
    unknown = [pool for pool in forecast.capacity if pool not in known]
    words = [f"As measured lately, {said} jobs a minute."] if known else []
    words += [f"How many pool {', '.join(unknown)} runs is not known: nothing has run there lately."] if unknown else []
    return " ".join(words)


def _by_hour(minutes: Sequence[ForecastMinute]) -> tuple[tuple[str, int, int], ...]:
    hours: dict[datetime, list[int]] = {}
    for minute in minutes:
        hours.setdefault(minute.at.replace(minute=0), []).append(minute.count)
    return tuple((clock(hour)[:5], sum(counts), max(counts)) for hour, counts in hours.items())
