"""One host keeps the store like the rows, at a price that does not grow with them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.utils import timezone as clock

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


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Rows of which every column was compared, from now on; a look takes ten in turn, and as long as it needs."""
    found: list[object] = []
    seen = definitions._seen
    monkeypatch.setattr(definitions, "IN_TURN", 10)
    monkeypatch.setattr(definitions, "BATCH", 150)
    monkeypatch.setattr(definitions, "TAKE_SECONDS", float("inf"))
    monkeypatch.setattr(definitions, "_seen", lambda row: (found.append(row), seen(row))[1])
    return found


def make(world: World, number: int) -> None:
    """So many schedules, in the store too, and nothing else to be done."""
    there = Schedule.objects.count()
    Schedule.objects.bulk_create(
        Schedule(name=f"s{n}", job_type="schedules.work", cron="@yearly") for n in range(there, number)
    )
    world.carry()
    world.definitions._declared_at = world.definitions._noted_at = float("inf")


@pytest.mark.parametrize("is_just_changed", [False, True], ids=["long ago", "just changed"])
def test_a_look_compares_as_few_rows_however_many_schedules_there_are(
    world: World, compared: list[object], django_assert_num_queries: Any, is_just_changed: bool
) -> None:
    def look_at_all_of(number: int) -> None:
        make(world, number)
        if not is_just_changed:
            world.definitions._stamped_at = float("-inf")
        compared.clear()
        with django_assert_num_queries(3 + is_just_changed):  # of those that just changed, versions are asked
            look(world)
        assert len(compared) <= 3 * definitions.IN_TURN

    look_at_all_of(40)
    look_at_all_of(400)

    Schedule.objects.update(cron="* * * * *")
    look(world)
    world.run(60)
    assert {len(world.fired(f"s{number}")) for number in (0, 199, 399)} == {1}


def test_where_there_is_no_schedule_a_look_asks_for_their_number_alone(
    world: World, django_assert_num_queries: Any
) -> None:
    world.schedule()
    Schedule.objects.all().delete()
    look(world)
    world.definitions._declared_at, world.definitions._noted_at = float("inf"), float("-inf")

    with django_assert_num_queries(1):
        look(world)

    world.schedule()
    world.run(60)
    assert world.fired() == [1]


def test_a_change_that_is_committed_late_is_found_behind_many_newer_ones(world: World, compared: list[object]) -> None:
    make(world, 100)
    schedule_stamp.take_away("default")  # the row comes with its stamp of then
    stamp = Schedule.objects.get(name="s50").changed_at
    Schedule.objects.exclude(name="s50").update(payload={"number": 1})
    look(world)
    late = stamp + timedelta(microseconds=1)
    Schedule.objects.filter(name="s50").update(cron="* * * * *", changed_at=late, version=2)
    look(world)
    world.run(60)

    assert world.fired("s50") == [1]


def test_of_very_many_changes_the_newest_are_taken_in_first_and_none_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch, compared: list[object]
) -> None:
    make(world, 100)
    monkeypatch.setattr(definitions, "TAKE_SECONDS", 0)
    monkeypatch.setattr(definitions, "BATCH", 20)
    monkeypatch.setattr(definitions, "OVERLAP", timedelta())  # whoever is not taken in at once is older than that
    Schedule.objects.update(priority=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET priority = 2 WHERE name = 's50'")

    priorities = []
    for _ in range(5):
        look(world)
        priorities.append(Counter(stored.kept.stored.definition.priority for stored in of_store(world, 100)))
        assert world.definitions.every == (0 if len(priorities) < 5 else definitions.LOOK_SECONDS)
    assert priorities[0] == {None: 80, 1: 19, 2: 1}
    assert priorities[-1] == {1: 99, 2: 1}


@pytest.fixture
def in_parts(world: World, monkeypatch: pytest.MonkeyPatch, compared: list[object]) -> None:
    """A hundred schedules have changed, of which a look takes in twenty."""
    make(world, 100)
    monkeypatch.setattr(definitions, "TAKE_SECONDS", 0)
    monkeypatch.setattr(definitions, "BATCH", 20)
    Schedule.objects.update(priority=1)


@pytest.mark.usefixtures("in_parts")
def test_whose_rhythm_is_not_settled_keeps_no_change_waiting_and_is_not_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: Counter[str] = Counter()

    def never_settled(_engine: object, rows: list[Schedule], **_: object) -> carrying.Carried:
        names = {row.name for row in rows}
        carried.update(names)
        return carrying.Carried(unsettled=names)

    monkeypatch.setattr(definitions, "carry", never_settled)
    for times in (1, 2, 3):
        for _ in range(5):
            look(world)
        assert set(carried.values()) == {times}
        assert len(carried) == 100
    assert world.definitions.every == definitions.LOOK_SECONDS


@pytest.mark.usefixtures("in_parts")
def test_who_is_no_keeper_any_more_leaves_the_rest_to_the_one_who_is(world: World) -> None:
    look(world)
    assert world.definitions.every == 0
    world.clock.advance(definitions.HOLD_MS / 1000)
    Definitions(world.engine).tick()
    world.carry()

    assert world.definitions.every == definitions.KEEPER_SECONDS


@pytest.mark.usefixtures("in_parts")
def test_a_database_that_goes_away_amid_many_changes_is_not_asked_without_a_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(world)
    with monkeypatch.context() as away:
        away.setattr(Definitions, "_stamped", lambda _: (_ for _ in ()).throw(DatabaseError("no such host")))
        look(world)
        assert world.definitions.every == definitions.LOOK_SECONDS
    look(world)

    assert world.definitions.every == 0


def of_store(world: World, number: int) -> list[Any]:
    return world.engine.schedules.read([f"s{n}" for n in range(number)])


def test_a_row_that_was_stamped_by_a_clock_ahead_hides_no_other(world: World, compared: list[object]) -> None:
    make(world, 40)
    ahead = clock.now() + timedelta(hours=1)
    Schedule.objects.filter(name="s1").update(priority=1, changed_at=ahead)
    look(world)
    Schedule.objects.filter(name="s20").update(cron="* * * * *")
    world.definitions._turn = 1_000_000
    look(world)
    world.run(60)

    assert world.fired("s20") == [1]


def test_who_compares_for_long_stays_the_keeper(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    make(world, 3)
    monkeypatch.setattr(definitions, "BATCH", 1)
    other = Definitions(world.engine)
    carry, others_turns = definitions.carry, []

    def slow(*arguments: Any, **options: Any) -> Any:
        world.clock.advance(definitions.HOLD_MS / 1000 - 1)
        world.definitions._held_at -= definitions.HOLD_MS / 1000 - 1
        others_turns.append(world.engine.duties.take(Definitions.name, other._me, definitions.HOLD_MS))
        return carry(*arguments, **options)

    monkeypatch.setattr(definitions, "carry", slow)
    world.definitions.check_again()
    world.carry()

    assert others_turns == [False] * 3


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
    versions = dict(Schedule.objects.values_list("name", "version"))
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
    after = dict(Schedule.objects.values_list("name", "version"))
    assert {name: after[name] - versions[name] for name in after} == {"changed": 1, "renamed": 1, "other": 0}


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
