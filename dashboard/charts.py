"""Charts as numbers for an SVG that the server draws: readable without script, and in print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dashboard.formats import clock, count, plural, rate, read_moment
from jobs.api.forecast import Forecast, ForecastMinute

WIDTH, HEIGHT, DEATHS = 600, 150, 44
GRID_LINES = 3
MINUTES = 60
BUCKET_SECONDS = 10  # of stats.series


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    height: float


@dataclass(frozen=True)
class Throughput:
    """Jobs that succeeded per second as a line, deaths per bucket as bars on a scale of their own."""

    line: str
    area: str
    bars: tuple[Bar, ...]
    bar_width: float
    scale: tuple[str, ...]  # labels of the grid lines, top first
    times: tuple[str, ...]
    done: str  # newest value, for the label at the line's end
    dead: str
    sentence: str
    table: tuple[tuple[str, str, str, str], ...]  # time, succeeded, failed, dead


def throughput(series: Sequence[dict[str, Any]], now: datetime) -> Throughput | None:
    """The last hour in minutes that end at the last whole bucket; None when nothing has ended in it."""
    end = math.floor(now.timestamp() / BUCKET_SECONDS) * BUCKET_SECONDS
    times = [datetime.fromtimestamp(end - 60 * back, UTC) for back in range(MINUTES, 0, -1)]
    sums = {at: dict.fromkeys(("succeeded", "failed", "dead"), 0) for at in times}
    for bucket in series:
        at = read_moment(bucket["at"])
        back = (end - at.timestamp()) / 60 if at else 0
        if 0 < back <= MINUTES:
            of_minute = sums[times[MINUTES - math.ceil(back)]]
            for name in of_minute:
                of_minute[name] += bucket[name]
    if not any(any(bucket.values()) for bucket in sums.values()):
        return None
    rates = [bucket["succeeded"] / 60 for bucket in sums.values()]
    deaths = [bucket["dead"] for bucket in sums.values()]
    top, most = _round_up(max(rates)), max(deaths) or 1
    step, width = WIDTH / (MINUTES - 1), WIDTH / MINUTES
    line = " ".join(f"{number * step:.1f},{HEIGHT - HEIGHT * value / top:.1f}" for number, value in enumerate(rates))
    ended, died = sum(bucket["succeeded"] for bucket in sums.values()), sum(deaths)
    return Throughput(
        line=f"M{line}",
        area=f"M{line} L{WIDTH},{HEIGHT} L0,{HEIGHT}Z",
        bars=tuple(
            Bar(number * width, DEATHS - (DEATHS - 2) * value / most, (DEATHS - 2) * value / most)
            for number, value in enumerate(deaths)
            if value
        ),
        bar_width=width - 1.5,
        scale=tuple(f"{top * (GRID_LINES - number) / GRID_LINES:g}" for number in range(GRID_LINES + 1)),
        times=tuple(clock(times[round(number * (MINUTES - 1) / 4)])[:5] for number in range(5)),
        done=f"{rate(rates[-1])}/s",
        dead=count(died),
        sentence=(
            f"{plural(ended, 'job')} succeeded and {count(died)} died "
            f"between {clock(times[0])[:5]} and {clock(datetime.fromtimestamp(end, UTC))[:5]} UTC."
        ),
        table=tuple(
            (clock(at)[:5], count(bucket["succeeded"]), count(bucket["failed"]), count(bucket["dead"]))
            for at, bucket in reversed(sums.items())
            if any(bucket.values())
        ),
    )


def _round_up(value: float) -> float:
    """The next of 1.5, 3, 6, 9 times a power of ten: the grid's three steps divide it into plain labels."""
    power = 0.01
    while True:
        for step in (1.5, 3, 6, 9):
            if value <= step * power:
                return step * power
        power *= 10


# --- Firings to come -------------------------------------------------------------------------------------------------

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
    top, span = _round_up(fullest.count), (forecast.end - forecast.start).total_seconds()
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
