"""A year of daily weather, aggregated by month, with an honest range for each mean.

The range is a bootstrap interval: the month's days are drawn again and again with replacement, and the middle 90 % of
the means so found is reported. That is real arithmetic and takes a while, which makes progress worth reporting.
"""

from __future__ import annotations

import calendar
import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import lru_cache
from pathlib import Path
from random import Random
from statistics import fmean

READINGS = Path(__file__).parent / "data" / "seattle-weather.csv"

INTERVAL = 0.90
WET_MILLIMETRES = 1.0
"""A day with at least this much precipitation counts as wet, as meteorologists have it."""


class NoReadings(Exception):
    """The data has nothing for the time asked for."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One day: precipitation in millimetres, temperatures in degrees Celsius."""

    day: date
    precipitation: float
    warmest: float
    coldest: float

    @property
    def mean(self) -> float:
        return (self.warmest + self.coldest) / 2


@dataclass(frozen=True, kw_only=True)
class Month:
    """One line of the report. ``low`` and ``high`` bound the mean temperature; ``missing`` days have no reading."""

    month: str
    days: int
    missing: int
    mean: float
    low: float
    high: float
    warmest: float
    coldest: float
    precipitation: float
    wet_days: int


@lru_cache(maxsize=1)
def readings() -> tuple[Reading, ...]:
    """All days of the data file, in order. Read once a process."""
    with READINGS.open(newline="", encoding="utf-8") as file:
        return tuple(
            Reading(
                day=date.fromisoformat(row["date"]),
                precipitation=float(row["precipitation"]),
                warmest=float(row["temp_max"]),
                coldest=float(row["temp_min"]),
            )
            for row in csv.DictReader(file)
        )


def months(year: int, *, resamples: int) -> Iterator[Month]:
    """The months of a year that have readings, one by one. Raises NoReadings when there is none."""
    of_year = [reading for reading in readings() if reading.day.year == year]
    if not of_year:
        first, last = readings()[0].day, readings()[-1].day
        raise NoReadings(f"There are no readings for {year}: the data covers {first} to {last}")
    for number in range(1, 13):
        days = [reading for reading in of_year if reading.day.month == number]
        if days:
            yield _month(days, resamples)


def as_csv(lines: list[Month]) -> bytes:
    """The report as a file for people and spreadsheets."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Month)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(line) for line in lines)
    return text.getvalue().encode()


def _month(days: list[Reading], resamples: int) -> Month:
    first = days[0].day
    means = [reading.mean for reading in days]
    low, high = _interval(means, resamples, seed=first.toordinal())
    return Month(
        month=f"{first:%Y-%m}",
        days=len(days),
        missing=calendar.monthrange(first.year, first.month)[1] - len(days),
        mean=round(fmean(means), 2),
        low=round(low, 2),
        high=round(high, 2),
        warmest=max(reading.warmest for reading in days),
        coldest=min(reading.coldest for reading in days),
        precipitation=round(sum(reading.precipitation for reading in days), 1),
        wet_days=sum(reading.precipitation >= WET_MILLIMETRES for reading in days),
    )


def _interval(values: list[float], resamples: int, *, seed: int) -> tuple[float, float]:
    # Seeded by the month: the same report comes out of every attempt, so running it twice does no harm.
    random = Random(seed)
    drawn = sorted(fmean(random.choices(values, k=len(values))) for _ in range(resamples))
    outside = int(resamples * (1 - INTERVAL) / 2)
    return drawn[outside], drawn[-1 - outside]
