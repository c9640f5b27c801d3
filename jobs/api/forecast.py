"""What will fire in the next hours, minute by minute, against what the pools can run: crowds are seen beforehand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any

import msgspec
from django.utils import timezone as clock

from jobs.api.asynchronous import twin
from jobs.core.job import iso, moment
from jobs.core.schedule.load import minutes
from jobs.engine import Engine, Pool, get_engine
from jobs.exceptions import SchedulerError
from jobs.models import Schedule
from jobs.services.firing import pool_of

NAMED = 10
"""Schedules named for one minute: those with the most firings."""
CROWD = 10
"""Where no capacity is known, a minute with as many firings and thrice the mean is a crowd."""


class ForecastMinute(msgspec.Struct, frozen=True, kw_only=True):
    """One minute in which something fires."""

    at: datetime
    count: int
    pools: dict[str, int]
    names: Sequence[str]
    more: int = 0
    """Schedules beyond those named."""
    crowded: str = ""
    """Why it is too much; empty: it is not."""

    def as_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__struct_fields__}, "at": iso(self.at)}


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Minutes without a firing are left out."""

    start: datetime
    end: datetime
    total: int
    minutes: Sequence[ForecastMinute]
    capacity: dict[str, float | None]
    """Pool → jobs that its workers can run in a minute, as measured lately; None: nothing was measured."""

    @property
    def crowded(self) -> Sequence[ForecastMinute]:
        return [minute for minute in self.minutes if minute.crowded]

    def as_dict(self) -> dict[str, Any]:
        return {
            "start": iso(self.start),
            "end": iso(self.end),
            "total": self.total,
            "capacity": self.capacity,
            "items": [minute.as_dict() for minute in self.minutes],
        }


def forecast(hours: float = 24, *, start: datetime | None = None) -> Forecast:
    """What the enabled schedules will fire from the next full minute on. StoreUnavailable."""
    engine = get_engine()
    first = (start or clock.now()).replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = first + timedelta(hours=hours)
    by_minute: dict[int, dict[str, int]] = defaultdict(dict)  # minutes since 1970
    pools: dict[str, str] = {}
    for row in Schedule.objects.filter(enabled=True, paused_at=None):
        try:
            stored = row.stored()
            found = minutes(stored, first, end, fired=row.firings)
        except SchedulerError:
            continue  # it fires never, and says so where schedules are listed
        pools[row.name] = pool_of(engine, stored.definition)
        for at, count in found:
            by_minute[at][row.name] = count
    capacity = _capacity(engine, set(pools.values()))
    total = sum(sum(firings.values()) for firings in by_minute.values())
    mean = total / max(1.0, hours * 60)
    return Forecast(
        start=first,
        end=end,
        total=total,
        minutes=[_minute(at, by_minute[at], pools, capacity, mean) for at in sorted(by_minute)],
        capacity=capacity,
    )


aforecast = twin(forecast, uses_database=True)


def _minute(
    minute: int, firings: dict[str, int], pools: dict[str, str], capacity: dict[str, float | None], mean: float
) -> ForecastMinute:
    of_pools: Counter[str] = Counter()
    for name, count in firings.items():
        of_pools[pools[name]] += count
    return ForecastMinute(
        at=moment(minute * 60_000),
        count=of_pools.total(),
        pools=dict(of_pools),
        names=nlargest(NAMED, firings, key=firings.__getitem__),
        more=max(0, len(firings) - NAMED),
        crowded=_crowd(of_pools, capacity, mean),
    )


def _crowd(of_pools: Counter[str], capacity: dict[str, float | None], mean: float) -> str:
    for pool, count in of_pools.most_common():
        can = capacity[pool]
        if can is not None and count > can:
            return f"pool {pool} gets {count:,} jobs and runs about {can:,.0f} a minute"
        if can is None and count >= CROWD and count > 3 * mean:
            return f"pool {pool} gets {count:,} jobs; the mean of all is {mean:,.1f} a minute"
    return ""


def _capacity(engine: Engine, names: set[str]) -> dict[str, float | None]:
    there = {pool.name: pool for pool in engine.pools.all()}
    return {name: _jobs_a_minute(there.get(name)) for name in sorted(names)}


def _jobs_a_minute(pool: Pool | None) -> float | None:
    seconds: float | None = getattr(pool, "run_seconds", None)
    if pool is None or not seconds or not pool.slots_actual:
        return None
    return round(pool.slots_actual * 60 / seconds, 1)
