"""The row is the definition: whatever changes it changes what fires at the next look; nothing fires twice for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from jobs.exceptions import StoreUnavailable
from jobs.models import Schedule
from jobs.services import carrying
from tests.schedules.conftest import World

# --- edits by every way ----------------------------------------------------------------------------------------------


def by_save() -> None:
    row = Schedule.objects.get()
    row.interval_seconds = 10
    row.save()


def by_bulk_update() -> None:
    Schedule.objects.update(interval_seconds=10)


def by_bulk_update_of_objects() -> None:
    row = Schedule.objects.get()
    row.interval_seconds = 10
    Schedule.objects.bulk_update([row], ["interval_seconds"])


def by_sql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET interval_seconds = 10")


EDITS = [by_save, by_bulk_update, by_bulk_update_of_objects, by_sql]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_rhythm_takes_effect_at_the_next_look_and_makes_nothing_up(
    world: World, edit: Callable[[], None]
) -> None:
    world.schedule(missed="run_all")
    world.run(90)
    edit()
    world.carry()
    world.run(30)

    minutes = world.fired()
    assert minutes[0] == 1
    assert [round(minute * 60) for minute in minutes[1:]] == [100, 110, 120]


def test_a_fixture_is_seen_at_the_next_look(world: World, tmp_path: Path) -> None:
    fields = {"name": "loaded", "job_type": "schedules.work", "kind": "interval", "interval_seconds": 60}
    fields |= {"created_at": world.now.isoformat(), "payload": {}}
    (tmp_path / "loaded.json").write_text(json.dumps([{"model": "jobs.schedule", "fields": fields}]))
    call_command("loaddata", tmp_path / "loaded.json", verbosity=0)
    world.carry()
    world.run(120)

    assert world.fired("loaded") == [1, 2]


@pytest.mark.parametrize("edit", ["save", "delete"])
def test_a_change_is_pushed_when_it_is_committed(world: World, commits: Callable[[], Any], edit: str) -> None:
    row = world.schedule()
    with commits():
        if edit == "save":
            row.interval_seconds = 10
            row.save()
        else:
            row.delete()
        assert world.next_look() == world.start_ms + 60_000

    assert world.next_look() == (world.start_ms + 10_000 if edit == "save" else None)


def test_a_push_that_finds_the_store_away_loses_nothing(
    world: World, commits: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = world.schedule()

    def away(_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(carrying, "push", away)
    with commits():
        row.interval_seconds = 10
        row.save()
    world.carry()

    assert world.next_look() == world.start_ms + 10_000


def test_an_edit_of_what_the_job_gets_moves_no_firing(world: World) -> None:
    world.schedule()
    world.run(30)
    Schedule.objects.update(payload={"number": 5})
    world.carry()
    world.run(60)

    assert world.fired() == [1]
    assert world.jobs()[0].payload == {"number": 5}


def test_edits_every_fifth_of_a_second_lose_no_firing_of_a_second(world: World) -> None:
    world.schedule(kind="interval", interval_seconds=1)
    for number in range(100):
        Schedule.objects.update(payload={"number": number})
        world.carry()
        world.clock.advance(0.2)
        world.tick()

    assert [round(minute * 60) for minute in world.fired()] == list(range(1, 21))


def test_an_edit_while_a_firing_is_under_way_neither_loses_nor_doubles_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schedule()
    world.clock.advance(60)
    fire = world.engine.schedules.fire

    def edit_then_fire(*args: Any, **kwargs: Any) -> Any:
        by_bulk_update()
        world.carry()
        return fire(*args, **kwargs)

    monkeypatch.setattr(world.engine.schedules, "fire", edit_then_fire)
    world.tick()
    monkeypatch.undo()
    world.carry()
    world.run(20)

    assert [round(minute * 60) for minute in world.fired()] == [60, 70, 80]


def test_a_deleted_schedule_fires_no_more_and_leaves_nothing(world: World) -> None:
    world.schedule()
    world.schedule("other")
    world.run(60)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_schedulechange")
        cursor.execute("DELETE FROM jobs_schedule WHERE name = 's'")
    world.carry()
    world.run(60)

    assert world.fired() == [1]
    assert world.fired("other") == [1, 2]
    assert world.records() == []


def test_a_disabled_schedule_has_no_firings_and_begins_anew_when_it_is_enabled(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(60)
    Schedule.objects.update(enabled=False)
    world.carry()
    world.run(120)
    Schedule.objects.update(enabled=True)
    world.carry()
    world.run(60)

    assert world.fired() == [1, 4]
    assert world.skipped() == []


def test_another_zone_never_back_fills(world: World) -> None:
    world.schedule(cron="0 * * * *", timezone="UTC", missed="run_all")
    world.run(3600)
    before = world.fired()
    Schedule.objects.update(timezone="Pacific/Auckland", cron="30 * * * *")
    world.carry()
    world.run(3600)

    assert len(world.fired()) == len(before) + 1


# --- one bad row -----------------------------------------------------------------------------------------------------


def test_a_bad_row_stops_only_itself_and_shows_its_error_until_it_is_mended(world: World) -> None:
    world.schedule("bad", cron="* * * * *")
    world.schedule("good", cron="* * * * *")
    world.run(60)
    world.remember()
    Schedule.objects.filter(name="bad").update(cron="99 * * * *")
    world.carry()
    world.run(120)

    assert len(world.fired("good")) == 3
    assert len(world.fired("bad")) == 1
    assert "99 is not between 0 and 59" in Schedule.objects.get(name="bad").error

    Schedule.objects.filter(name="bad").update(cron="* * * * *")
    world.carry()
    assert Schedule.objects.get(name="bad").error == ""
    world.run(60)
    assert len(world.fired("bad")) == 2
