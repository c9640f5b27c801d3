"""One host keeps the store like the rows, at a price that does not grow with them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection

from jobs.core.job import moment
from jobs.models import Schedule, schedule_stamp
from jobs.services import carrying, definitions
from jobs.services.definitions import Definitions
from tests.schedules.conftest import World


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
    monkeypatch.setattr(definitions, "BATCH", 150)
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


def test_how_far_a_schedule_is_reaches_its_row(world: World) -> None:
    world.schedule()
    world.run(130)
    world.remember()

    row = Schedule.objects.get()
    assert (row.firings, row.last_fired_at) == (2, moment(world.start_ms + 120_000))
    assert row.version == 1
