"""Schedules in Python: create, change, run, pause, backfill, files, and how they stand."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.core.exceptions import ValidationError

from jobs import Interval, job, schedules
from jobs.core.pause import EVERYTHING
from jobs.core.schedule.definition import FIELDS, Stored, definition_of
from jobs.core.schedule.plan import Plan, milliseconds_of
from jobs.exceptions import OptionInvalid, PayloadInvalid, ScheduleInvalid, SchedulerError, UnknownJobType, WrongState
from jobs.models import AuditEntry, Schedule
from jobs.services.declarations import declare
from tests.schedules.conftest import World, create

pytestmark = pytest.mark.usefixtures("same_engine")


def test_a_created_schedule_fires(world: World) -> None:
    create(world)
    world.run(60)

    assert world.fired() == [1]
    assert schedules.get("s").changed_by == "ana"
    assert AuditEntry.objects.filter(action="schedule.create", target="s").exists()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cron": "0 0 31 2 *", "kind": "cron", "interval_seconds": None}, ScheduleInvalid),
        ({"job_type": "schedules.wrok"}, UnknownJobType),
        ({"payload": {"numbr": 1}}, PayloadInvalid),
        ({"priority": 1000}, OptionInvalid),
        ({"nmae": "x"}, ScheduleInvalid),
        ({"starts_at": "tomorrow"}, ScheduleInvalid),
    ],
)
def test_what_could_not_fire_is_refused(world: World, fields: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        create(world, **fields)
    assert not Schedule.objects.exists()


def test_a_name_is_there_once(world: World) -> None:
    create(world)
    with pytest.raises(ScheduleInvalid, match="already"):
        create(world)


def test_a_name_that_is_not_there_is_answered_with_the_nearest(world: World) -> None:
    create(world, name="nightly")
    with pytest.raises(schedules.ScheduleNotFound) as missing:
        schedules.get("nigthly")
    assert "nightly" in missing.value.fix


def test_a_schedule_of_the_code_can_be_paused_and_not_changed(world: World) -> None:
    job("schedules.own", schedule=Interval(60))(lambda: None)
    declare()

    with pytest.raises(WrongState):
        schedules.update("schedules.own", interval_seconds=5)
    with pytest.raises(WrongState):
        schedules.delete("schedules.own")
    assert schedules.pause("schedules.own", by="ana").is_paused


def test_run_now_makes_a_job_of_this_moment_and_moves_no_rhythm(world: World) -> None:
    create(world)
    world.clock.advance(20)
    handle = schedules.run("s", by="ana")
    world.run(60)

    [now, one] = world.jobs()
    assert (now.id, now.schedule, now.fire_time) == (handle.id, "s", world.now - timedelta(seconds=60))
    assert world.minutes(one.fire_time) == 1
    assert [(record.by, record.reason) for record in world.records()] == [("ana", "run now"), (None, "")]


def test_a_job_that_was_run_by_hand_counts_as_the_one_before(world: World) -> None:
    create(world, overlap="skip")
    handle = schedules.run("s")
    world.run(60)

    assert world.skipped() == [(1, f"the job before has not ended: {handle.id}")]


def test_a_backfill_makes_what_is_not_there(world: World) -> None:
    create(world)
    world.run(180)
    start, end = world.now - timedelta(seconds=600), world.now

    assert schedules.backfill_count("s", start, end) == 4  # the interval begins with its anchor
    last = [*schedules.backfill("s", start, end, by="ana")][-1]
    assert (last.made, last.there, last.total, last.until) == (1, 3, 4, world.now)
    assert world.fired() == [0, 1, 2, 3]
    again = [*schedules.backfill("s", start, end)][-1]
    assert (again.made, again.there) == (0, 4)


def named(call: Any) -> Any:
    """An enqueue middleware."""

    def enqueue(request: Any) -> Any:
        request.spec = msgspec.structs.replace(request.spec, tags=["named"])
        return call(request)

    return enqueue


def test_what_is_run_by_hand_and_filled_in_passes_the_enqueue_middleware(world: World, settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.named"]}
    create(world)
    world.clock.advance(180)
    schedules.run("s")
    [*_, done] = schedules.backfill("s", world.now - timedelta(minutes=3), world.now)

    jobs = world.jobs()
    assert (done.made, len(jobs)) == (4, 5)
    assert {tuple(job.tags) for job in jobs} == {("named",)}


def test_a_backfill_of_the_future_is_refused(world: World) -> None:
    create(world)
    with pytest.raises(OptionInvalid, match="future"):
        schedules.backfill_count("s", world.now, world.now + timedelta(hours=1))


def test_a_backfill_that_is_stopped_says_how_far_it_came_and_can_be_gone_on_with(world: World) -> None:
    create(world)
    start = world.now
    world.clock.advance(60 * 300)
    end = world.now

    for progress in schedules.backfill("s", start, end, by="ana"):
        half = progress
        break

    [record] = world.records()
    assert half.until is not None
    assert half.until < end
    assert (record.count, record.until) == (half.made, milliseconds_of(half.until))
    assert AuditEntry.objects.get(action="schedule.backfill").after["to"] == str(half.until)
    rest = [*schedules.backfill("s", start, end)][-1]
    assert (rest.made, rest.there) == (301 - half.made, half.made)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_backfill_at_no_possible_rate_is_refused_before_it_begins(world: World, rate: float) -> None:
    create(world)
    with pytest.raises(OptionInvalid, match="rate"):
        schedules.backfill("s", world.now, world.now, rate=rate)


def test_a_change_can_be_reverted(world: World) -> None:
    create(world)
    schedules.update("s", interval_seconds=10, payload={"number": 2}, by="ben")
    first = schedules.changes("s")[-1]
    schedules.revert("s", first.pk, by="cleo")

    row = schedules.get("s")
    assert (row.interval_seconds, row.payload, row.changed_by, row.version) == (60, {}, "cleo", 3)


def test_what_is_exported_can_be_imported(world: World) -> None:
    create(world, starts_at=datetime(2026, 1, 1, tzinfo=UTC), payload={"number": 3}, overlap="skip")
    exported = schedules.export()
    assert schedules.import_(exported).unchanged == ["s"]

    schedules.delete("s")
    assert schedules.import_(exported, dry_run=True).created == ["s"]
    assert not Schedule.objects.exists()
    assert schedules.import_(exported).created == ["s"]
    assert schedules.export() == exported


def test_nothing_is_imported_where_one_is_wrong(world: World) -> None:
    good = {"name": "good", "job_type": "schedules.work", "cron": "* * * * *"}
    with pytest.raises(ScheduleInvalid, match="'bad'"):
        schedules.import_([good, {**good, "name": "bad", "cron": "nonsense"}])
    assert not Schedule.objects.exists()


def test_nothing_is_imported_where_one_cannot_be_stored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"name": name, "job_type": "schedules.work", "cron": "* * * * *"} for name in ("good", "bad")]
    save = Schedule.save

    def refuses(row: Schedule, **options: Any) -> None:
        if row.name == "bad":
            raise ValidationError("No.")
        save(row, **options)

    monkeypatch.setattr(Schedule, "save", refuses)
    with pytest.raises(ScheduleInvalid, match="'bad'"):
        schedules.import_(items)
    assert not Schedule.objects.exists()


def test_a_file_that_names_a_schedule_twice_is_refused(world: World) -> None:
    item = {"name": "s", "job_type": "schedules.work", "cron": "* * * * *"}
    with pytest.raises(ScheduleInvalid, match="twice"):
        schedules.import_([item, item])
    assert not Schedule.objects.exists()


ODD = (None, "", 0, -1, 1.5, float("nan"), float("inf"), 10**30, True, [], {}, "x" * 300, "\0", "é/{}", b"x", {1: 2})
EDGES = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-01-01")


@pytest.mark.parametrize("kind", [{"cron": "* * * * *"}, {"interval_seconds": 5}, {"run_at": "2026-01-01T00:00:00Z"}])
@pytest.mark.parametrize("field", FIELDS)
def test_whatever_a_field_holds_it_makes_a_schedule_or_is_refused(kind: dict[str, Any], field: str) -> None:
    name = {"cron": "cron", "interval_seconds": "interval", "run_at": "once"}[next(iter(kind))]
    for value in (*ODD, *EDGES):
        with suppress(SchedulerError):
            made = definition_of({"name": "n", "job_type": "t", "kind": name, **kind, field: value})
            stored = Stored(definition=made, created_at=datetime(2026, 1, 1, tzinfo=UTC))
            assert stored.digest != stored.rhythm
            Plan(stored).next_after(0)


# --- how they stand --------------------------------------------------------------------------------------------------


def test_a_status_tells_what_is_next_and_what_was(world: World) -> None:
    create(world)
    world.run(60)
    world.end(world.jobs()[0].id)
    world.run(60)

    status = schedules.status(["s", "nobody"])
    assert list(status) == ["s"]
    stands = status["s"]
    assert world.minutes(stands.next_at) == 3
    assert [view.outcome for view in stands.firings] == ["waiting", "succeeded"]
    assert (stands.late_seconds, stands.fired, stands.last) == (None, 2, stands.firings[0])


def test_how_a_schedule_stands_is_told_in_a_word(world: World) -> None:
    for name in ("on", "paused", "disabled", "cannot fire"):
        create(world, name=name)
    for name, firings in (("finished", 1), ("waits", 2)):
        create(world, name=name, max_firings=firings, overlap="queue_one")
    schedules.pause("paused")
    Schedule.objects.filter(name="disabled").update(enabled=False)
    Schedule.objects.filter(name="cannot fire").update(interval_seconds=-1)
    world.carry()
    world.run(120)
    found = schedules.status([row.name for row in schedules.list()])

    words = {row.name: schedules.state_word(row, found[row.name]) for row in schedules.list()}
    assert words == {name: name for name in words} | {"waits": "on"}


def test_a_schedule_that_nobody_fires_is_late_and_says_why(world: World) -> None:
    create(world)
    world.clock.advance(90)

    stands = schedules.status(["s"])["s"]
    assert (stands.late_seconds, stands.late_why) == (30, "no worker host is alive")
    [late] = schedules.late()
    assert (late.name, late.seconds, late.why) == ("s", 30, "no worker host is alive")

    world.tick()
    assert schedules.status(["s"])["s"].late_seconds is None
    assert schedules.late() == []


@pytest.mark.parametrize("is_fired", [True, False], ids=["a host skips", "no host is there"])
def test_while_the_scheduler_is_paused_what_is_passed_over_is_late(world: World, is_fired: bool) -> None:
    create(world)
    create(world, name="rare", interval_seconds=3600)
    world.engine.pauses.pause(EVERYTHING, by="ana")
    assert schedules.status(["s"])["s"].late_seconds is None
    if is_fired:
        world.run(90)
    else:
        world.clock.advance(90)

    found = schedules.status(["s", "rare"])
    assert (found["s"].late_seconds, found["rare"].late_seconds) == (30, None)
    assert found["s"].late_why == "the scheduler is paused, and no worker host is alive"
    [late] = schedules.late()
    assert (late.name, late.seconds, late.due_at) == ("s", 30, world.now - timedelta(seconds=30))

    world.engine.pauses.resume(EVERYTHING)
    world.run(60)
    assert schedules.late() == []


def test_a_paused_schedule_is_never_late(world: World) -> None:
    create(world)
    schedules.pause("s")
    world.carry()
    world.clock.advance(600)

    assert schedules.status(["s"])["s"].late_seconds is None
    assert schedules.late() == []


def test_a_thousand_schedules_are_read_in_few_round_trips(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    Schedule.objects.bulk_create(
        Schedule(name=f"s{number}", job_type="schedules.work", cron="@daily") for number in range(1000)
    )
    world.carry()
    read = world.engine.store.read
    calls: list[int] = []
    monkeypatch.setattr(world.engine.store, "read", lambda send: (calls.append(1), read(send))[1])

    assert len(schedules.status([f"s{number}" for number in range(1000)])) == 1000
    assert len(calls) < 20


# --- what is to come -------------------------------------------------------------------------------------------------
