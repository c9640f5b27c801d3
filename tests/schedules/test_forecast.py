"""What schedules are to fire: counted by minute, and where it is more than a pool can run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from jobs import schedules
from jobs.core.schedule.definition import Stored, definition_of
from jobs.core.schedule.load import count, minutes
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.models import Schedule
from tests.schedules.conftest import World, create

pytestmark = pytest.mark.usefixtures("same_engine")


def test_a_forecast_counts_by_minute_and_leaves_out_what_is_paused(world: World) -> None:
    create(world, name="cron", kind="cron", interval_seconds=None, cron="*/15 * * * *")
    create(world, name="fast", interval_seconds=20)
    create(world, name="paused", interval_seconds=20)
    schedules.pause("paused")

    forecast = schedules.forecast(hours=1, start=world.now)
    assert forecast.total == 4 + 180
    assert Counter(minute.count for minute in forecast.minutes) == {3: 56, 4: 4}
    assert forecast.minutes[0].pools == {"default": forecast.minutes[0].count}


def test_a_minute_with_more_firings_than_its_pool_can_run_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(world, name="fast", interval_seconds=20)
    measured = [msgspec.structs.replace(pool, slots_actual=2, run_seconds=60.0) for pool in world.engine.pools.all()]
    monkeypatch.setattr(world.engine.pools, "all", lambda: measured)
    forecast = schedules.forecast(hours=1, start=world.now)

    assert forecast.capacity == {"default": 2.0}
    assert len(forecast.crowded) == 60
    assert forecast.crowded[0].crowded == "pool default gets 3 jobs and runs about 2 a minute"

    measured[0] = msgspec.structs.replace(measured[0], slots_actual=3)
    assert schedules.forecast(hours=1, start=world.now).crowded == []


def test_a_crowd_is_named_where_no_capacity_is_known(world: World) -> None:
    rows = [Schedule(name=f"s{number}", job_type="schedules.work", cron="0 * * * *") for number in range(30)]
    Schedule.objects.bulk_create(rows)

    [minute] = schedules.forecast(hours=1).crowded
    assert (minute.count, minute.more, minute.at.minute) == (30, 20, 0)
    assert "pool default gets 30 jobs" in minute.crowded


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "*/7 3-5 * * MON"},
        {"cron": "0 0 1 * 5"},
        {"cron": "15,45 */10 9-17 L * *"},
        {"cron": "30 2 * * *", "timezone": "Asia/Kathmandu"},
        {"cron": "*/20 * * * *", "timezone": "Europe/Paris"},
        {"kind": "interval", "interval_seconds": 7.5},
        {"kind": "interval", "interval_seconds": 4000},
        {"cron": "* * * * *", "max_firings": 10},
        {"kind": "once", "run_at": datetime(2026, 3, 29, 12, 0, 30, tzinfo=UTC)},
    ],
    ids=str,
)
def test_the_forecast_counts_what_a_walk_through_the_firings_counts(fields: dict[str, Any]) -> None:
    stored = Stored(
        definition=definition_of({"name": "s", "job_type": "t", **fields}), created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    end = start + timedelta(hours=24)
    plan = Plan(stored)
    first = plan.next_after(milliseconds_of(start) - 1)
    walked = list(plan.between(first, milliseconds_of(end) - 1))[: stored.definition.max_firings] if first else []
    counted = Counter(at // 60_000 for at in walked)

    assert minutes(stored, start, end) == sorted(counted.items())


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Paris", "Asia/Kathmandu", "Australia/Lord_Howe"])
@pytest.mark.parametrize("cron", ["*/7 3-5 * * *", "15,45 */10 9-17 * * *", "30 2 * * SUN"])
def test_a_long_range_is_counted_as_it_is_walked_through_whatever_the_clocks_do_in_it(cron: str, timezone: str) -> None:
    fields = {"name": "s", "job_type": "t", "timezone": timezone}
    stored = Stored(definition=definition_of({**fields, "cron": cron}), created_at=datetime(2026, 1, 1, tzinfo=UTC))
    start, end = datetime(2026, 2, 1, 9, 0, 30, tzinfo=UTC), datetime(2026, 5, 2, 10, 20, 15, tzinfo=UTC)
    plan = Plan(stored)
    first = plan.next_after(milliseconds_of(start) - 1) or 0

    assert count(stored, start, end) == sum(1 for _ in plan.between(first, milliseconds_of(end) - 1))


def test_upcoming_firings_stop_at_the_limit(world: World) -> None:
    create(world, max_firings=2)

    assert len(schedules.upcoming("s")) == 2


async def test_twins_answer_the_same(world: World) -> None:
    assert list(await schedules.alate()) == []
