"""The row is the definition: whatever changes it changes what fires at the next look; nothing fires twice for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection

from jobs import Cron, Interval, job
from jobs.core.job import moment
from jobs.exceptions import OptionInvalid, StoreUnavailable
from jobs.models import Schedule, schedule_stamp
from jobs.registry import registry
from jobs.services import carrying, definitions
from jobs.services.declarations import WITHDRAWN_WORDS, declare
from jobs.services.definitions import Definitions
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


# --- a store that was emptied or put back ----------------------------------------------------------------------------


@pytest.mark.parametrize("missed", ["skip", "run_once", "run_all"])
def test_an_emptied_store_is_filled_from_the_rows_without_firing_or_inventing_anything(
    world: World, missed: str
) -> None:
    world.schedule(missed=missed)
    world.run(130)
    world.remember()
    world.wipe()
    world.tick()
    world.carry()
    world.run(60)

    assert world.fired() == [3]
    assert Schedule.objects.get().firings == 2


def test_what_was_due_while_the_store_was_empty_is_recorded_as_unknown(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(60)
    world.remember()
    world.wipe()
    world.clock.advance(150)
    world.carry()
    world.run(60)

    assert world.fired() == [4]
    assert world.skipped() == [(2, carrying.UNKNOWN)]


def test_a_limit_of_firings_outlives_the_store(world: World) -> None:
    world.schedule(max_firings=3)
    world.run(120)
    world.remember()
    world.wipe()
    world.carry()
    world.run(300)

    assert world.fired() == [3]


def test_a_single_firing_to_come_outlives_the_store_also_if_its_time_passes(world: World) -> None:
    world.schedule(kind="once", run_at=world.now + timedelta(minutes=1), missed="run_once")
    world.wipe()
    world.clock.advance(120)
    world.carry()
    world.run(10)

    assert world.fired() == [1]
    world.remember()
    world.wipe()
    world.carry()
    world.run(10)
    assert world.fired() == []


@pytest.mark.parametrize("missed", ["skip", "run_once", "run_all"])
def test_a_store_that_was_put_back_repeats_nothing(world: World, missed: str) -> None:
    """Its state is of before the last firings; the host that runs knows better, and so do the rows."""
    world.schedule(missed=missed)
    world.run(60)
    old = world.dump()
    world.run(120)
    world.remember()
    world.restore(old)
    world.run(5)
    world.carry()
    world.run(60)

    assert world.fired() == [1, 4]


def test_a_host_that_starts_on_a_store_that_was_put_back_looks_first(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(60)
    old = world.dump()
    world.run(120)
    world.remember()
    world.restore(old)
    fresh = Definitions(world.engine)
    from jobs.services.ticker import Ticker

    ticker = Ticker(world.engine, fresh)
    assert ticker.tick() == {"fired": 0, "skipped": 0}
    fresh.tick()
    ticker.tick()

    assert world.fired() == [1]


def test_firing_goes_on_while_the_database_is_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.schedule()

    def away(*_: Any) -> None:
        raise DatabaseError("no such host")

    monkeypatch.setattr(Definitions, "_compare", away)
    world.carry()
    carrying, ticker = world.host()
    world.clock.advance(60)
    ticker.tick()

    assert carrying.is_checked
    assert world.fired() == [1]


def test_one_host_keeps_the_definitions_and_another_takes_over_when_it_is_gone(world: World) -> None:
    other, _ = world.host()
    assert (world.definitions.every, other.every) == (definitions.LOOK_SECONDS, definitions.KEEPER_SECONDS)

    world.clock.advance(definitions.HOLD_MS / 1000)
    other.tick()
    world.carry()
    assert (world.definitions.every, other.every) == (definitions.KEEPER_SECONDS, definitions.LOOK_SECONDS)


def test_rows_without_a_stamp_are_looked_at_in_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "IN_TURN", 2)
    for number in range(5):
        world.schedule(f"s{number}")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET payload = '{\"number\": 9}', changed_at = '2020-01-01 00:00:00+00:00'")
    for _ in range(4):
        world.carry()
    world.run(60)

    assert [job.payload for number in range(5) for job in world.jobs(f"s{number}")] == [{"number": 9}] * 5


def test_a_look_costs_the_same_however_many_schedules_there_are(
    world: World, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(definitions, "IN_TURN", 10)
    looked_at: list[object] = []
    fingerprint = definitions._fingerprint
    monkeypatch.setattr(definitions, "_fingerprint", lambda row: (looked_at.append(row), fingerprint(row))[1])

    def look_at_all_of(number: int) -> None:
        there = Schedule.objects.count()
        Schedule.objects.bulk_create(
            Schedule(name=f"s{n}", job_type="schedules.work", cron="@yearly") for n in range(there, number)
        )
        world.carry()
        world.definitions._stamped_at = float("-inf")  # it was long ago
        world.definitions._declared_at = world.definitions._noted_at = float("inf")  # and nothing else is to be done
        looked_at.clear()
        with django_assert_num_queries(3):
            look(world)
        assert len(looked_at) <= 3 * definitions.IN_TURN

    look_at_all_of(40)
    look_at_all_of(400)

    Schedule.objects.update(cron="* * * * *")
    look(world)
    world.run(60)
    assert {len(world.fired(f"s{number}")) for number in (0, 199, 399)} == {1}


def test_a_host_that_begins_looks_closely_only_at_what_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        world.schedule(f"s{number}", cron="* * * * *", payload={"number": number}, starts_at=world.now)
    world.run(60)
    world.remember()
    Schedule.objects.filter(name="s1").update(priority=5)
    looked_at: list[str] = []
    plan_of = carrying._plan_of
    monkeypatch.setattr(carrying, "_plan_of", lambda row, live: (looked_at.append(row.name), plan_of(row, live))[1])

    Definitions(world.engine)._check()

    assert looked_at == ["s1"]


def test_plain_sql_stamps_the_row_it_changes_so_that_the_next_look_finds_it(world: World) -> None:
    """However many rows there are: none is looked at in turn here."""
    for name in ("changed", "renamed", "other"):
        world.schedule(name)
    stamps = dict(Schedule.objects.values_list("name", "changed_at"))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET payload = '{\"number\": 9}' WHERE name = 'changed'")
        cursor.execute("UPDATE jobs_schedule SET interval_seconds = 30 WHERE name = 'renamed'")
        cursor.execute("UPDATE jobs_schedule SET firings = 7, error = 'x' WHERE name = 'other'")
    world.definitions._turn = 1_000_000
    look(world)
    world.run(60)

    assert [job.payload for job in world.jobs("changed")] == [{"number": 9}]
    assert world.fired("renamed") == [0.5, 1]
    assert Schedule.objects.get(name="other").changed_at == stamps["other"]


def test_the_stamp_is_put_in_place_by_migrate(world: World) -> None:
    row = world.schedule()
    schedule_stamp.take_away("default")
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET interval_seconds = 30")

    assert Schedule.objects.get().changed_at > row.changed_at


def look(world: World) -> None:
    """A look of the keeper in which it does not ask whether it still is."""
    world.definitions.tick()


def test_a_row_that_plain_sql_renames_fires_under_its_new_name_alone(world: World) -> None:
    world.schedule("old")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET name = 'new', changed_at = '2020-01-01 00:00:00+00:00'")
    look(world)
    world.run(120)

    assert (world.fired("old"), world.fired("new")) == ([], [1, 2])


def test_a_row_that_comes_without_a_stamp_is_seen_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "IN_TURN", 1)
    for number in range(3):
        world.schedule(f"s{number}")
    [row] = Schedule.objects.filter(name="s0")
    row.pk, row.name, row.changed_at = None, "late", moment(0)
    Schedule.objects.bulk_create([row])
    look(world)
    world.run(60)

    assert world.fired("late") == [1]


@pytest.mark.parametrize("is_pushed", [True, False], ids=["pushed", "compared"])
def test_a_name_that_is_used_again_belongs_to_the_new_row(world: World, is_pushed: bool) -> None:
    world.schedule(max_firings=2)
    world.run(180)
    assert world.fired() == [1, 2]

    Schedule.objects.filter(name="s").delete()  # the store does not hear of it
    again = Schedule(name="s", job_type="schedules.work", kind="interval", interval_seconds=60.0, max_firings=2)
    again.created_at = again.changed_at = world.now
    again.save()
    if is_pushed:
        carrying.push(["s"])
    look(world)
    world.run(300)

    assert world.fired() == [1, 2, 4, 5]


# --- declared in code ------------------------------------------------------------------------------------------------


def test_a_declared_schedule_owns_its_row_and_fires(world: World) -> None:
    @job("schedules.nightly", schedule=Cron("30 2 * * *", timezone="Europe/Paris"))
    def nightly() -> None: ...

    @job("schedules.often", schedule=Interval(60))
    def often() -> None: ...

    carrying, _ = world.host()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.owner, row.cron, row.timezone, row.job_type) == ("code", "30 2 * * *", "Europe/Paris", row.name)
    Schedule.objects.filter(name="schedules.often").update(created_at=world.now)
    assert carrying.is_checked
    world.carry()
    world.run(120)
    assert len(world.fired("schedules.often")) == 2


def test_a_changed_declaration_changes_its_row_and_an_unchanged_one_does_not(world: World) -> None:
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    declare()
    declare()
    assert Schedule.objects.get(name="schedules.nightly").version == 1

    del registry._types["schedules.nightly"]
    job("schedules.nightly", schedule=Cron("30 3 * * *"))(lambda: None)
    declare()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.cron, row.version, row.changed_by) == ("30 3 * * *", 2, "code")


def test_a_declaration_that_no_host_has_any_more_is_withdrawn_and_comes_back_with_the_code(world: World) -> None:
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    world.host()
    del registry._types["schedules.nightly"]
    Schedule.objects.update(declared_at=world.now - timedelta(days=365 * 3))
    world.definitions._declared_at = float("-inf")
    world.carry()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.enabled, row.error) == (False, WITHDRAWN_WORDS)

    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    world.host()
    row.refresh_from_db()
    assert (row.enabled, row.error) == (True, "")


def test_a_schedule_of_a_person_keeps_its_name(world: World) -> None:
    world.schedule("schedules.nightly")
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    declare()

    assert Schedule.objects.get(name="schedules.nightly").owner == "admin"


def test_a_declared_schedule_needs_no_arguments(world: World) -> None:
    with pytest.raises(OptionInvalid, match="needs arguments"):
        job("schedules.needy", schedule=Interval(60))(lambda to: None)
    with pytest.raises(OptionInvalid, match="expected Cron or Interval"):
        job("schedules.odd", schedule="* * * * *")(lambda: None)  # type: ignore[arg-type]


def test_how_far_a_schedule_is_reaches_its_row(world: World) -> None:
    world.schedule()
    world.run(130)
    world.remember()

    row = Schedule.objects.get()
    assert (row.firings, row.last_fired_at) == (2, moment(world.start_ms + 120_000))
    assert row.version == 1
