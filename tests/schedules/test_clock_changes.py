"""What fires is what the preview shows, also where clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.core.schedule import preview
from jobs.models import Schedule
from tests.schedules.conftest import World

CHANGES = [
    ("Europe/Paris", datetime(2027, 3, 28, 1, tzinfo=UTC)),
    ("Europe/Paris", datetime(2027, 10, 31, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2027, 3, 14, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2027, 11, 7, 6, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2027, 4, 3, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2027, 10, 2, 15, 30, tzinfo=UTC)),
    ("America/Santiago", datetime(2027, 4, 4, 3, tzinfo=UTC)),
    ("America/Santiago", datetime(2027, 9, 5, 4, tzinfo=UTC)),
    ("Africa/Cairo", datetime(2027, 4, 29, 22, tzinfo=UTC)),
    ("Africa/Cairo", datetime(2027, 10, 28, 21, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2027, 3, 28, 1, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2027, 10, 31, 1, tzinfo=UTC)),
]
"""A zone and the moment at which its clocks are changed."""

EXPRESSIONS = ("30 2 * * *", "0 0 * * *", "*/30 * * * *", "15 */2 * * *", "0 1-3 * * *", "30 1,23 * * *", "45 0 * * *")
HOURS = 14


@pytest.mark.parametrize(("zone", "change"), CHANGES, ids=[f"{zone} {change:%m}" for zone, change in CHANGES])
def test_around_a_change_of_the_clocks_it_fires_as_the_preview_says(world: World, zone: str, change: datetime) -> None:
    offsets = {(change + timedelta(minutes=side)).astimezone(ZoneInfo(zone)).utcoffset() for side in (-1, 1)}
    assert len(offsets) == 2, "the clocks are changed at this moment"
    start = change - timedelta(hours=HOURS / 2)
    world.clock.advance((start.timestamp() * 1000 - world.clock.now_ms()) / 1000)
    Schedule.objects.bulk_create(
        Schedule(name=text, job_type="schedules.work", cron=text, timezone=zone, changed_at=start)
        for text in EXPRESSIONS
    )
    world.carry()
    world.run(HOURS * 3600)

    for text in EXPRESSIONS:
        shown = [item.utc for item in preview(text, zone, 100, start).items if item.utc <= world.now]
        assert [job.fire_time for job in world.jobs(text)] == shown, text
