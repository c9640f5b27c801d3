"""Each nominal time makes one job or leaves one reason, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import Context, job
from jobs.exceptions import StoreUnavailable
from jobs.models import Schedule
from jobs.registry import registry
from tests.schedules.conftest import World


def test_a_schedule_fires_at_its_times_and_its_jobs_know_them(world: World) -> None:
    world.schedule(payload={"number": 7}, priority=5, pool="default", max_retries=1, timeout=9)
    world.run(190)

    assert world.fired() == [1, 2, 3]
    one = world.jobs()[0]
    assert (one.schedule, one.payload, one.priority, one.max_retries, one.timeout) == ("s", {"number": 7}, 5, 1, 9)
    assert one.fire_time == one.created_at


def test_a_handler_sees_the_schedule_and_the_nominal_time(world: World) -> None:
    world.schedule()
    world.run(60)

    leased = world.lease(world.jobs()[0].id)
    context = Context(leased, {})
    assert context.schedule == "s"
    assert context.fire_time is not None
    assert world.minutes(context.fire_time) == 1


def test_each_firing_leaves_a_record(world: World) -> None:
    world.schedule()
    world.clock.advance(61)
    world.tick()

    [record] = world.records()
    assert (record.outcome, record.job) == ("fired", world.jobs()[0].id)
    assert (record.due, record.at) == (world.start_ms + 60_000, world.start_ms + 61_000)


def test_records_are_kept_by_number_and_by_age(world: World) -> None:
    kept = world.engine.settings.firings_kept
    world.schedule(kind="interval", interval_seconds=1)
    world.run(kept + 20)
    assert len(world.records()) == kept

    Schedule.objects.update(interval_seconds=40 * 86_400)
    world.carry()
    world.clock.advance(40 * 86_400)
    world.tick()
    assert len(world.records()) == 1


def test_a_ticker_sleeps_until_the_next_firing_of_all(world: World) -> None:
    world.schedule()
    world.schedule("other", kind="interval", interval_seconds=59.5)
    world.run(58)

    assert world.ticker.every == pytest.approx(1.5)


def test_two_hosts_that_look_at_once_fire_once(world: World) -> None:
    world.schedule()
    _, other = world.host()
    for _ in range(10):
        world.clock.advance(30)
        world.tick()
        other.tick()

    assert world.fired() == [1, 2, 3, 4, 5]


def test_hundreds_of_schedules_that_are_due_at_once_all_fire(world: World) -> None:
    rows = [
        Schedule(
            name=f"s{number}", job_type="schedules.work", kind="interval", interval_seconds=60, created_at=world.now
        )
        for number in range(450)
    ]
    Schedule.objects.bulk_create(rows)
    world.carry()
    world.clock.advance(60)

    assert world.tick()["fired"] == 450
    assert world.fired("s449") == [1]


# --- downtime --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "fired"),
    [("skip", [6]), ("run_once", [5, 6]), ("run_all", [1, 2, 3, 4, 5, 6])],
)
def test_downtime_over_five_firings(world: World, missed: str, fired: list[float]) -> None:
    world.schedule(missed=missed)
    world.clock.advance(5.5 * 60)
    _, later = world.host()
    later.tick()
    world.clock.advance(30)
    later.tick()

    assert world.fired() == fired
    accounted = sum(record.count or 0 for record in world.records())
    assert accounted == 6


def test_run_all_is_capped_and_the_rest_is_recorded(world: World) -> None:
    world.schedule(missed="run_all", missed_limit=3)
    world.clock.advance(100 * 60 + 30)
    _, later = world.host()
    later.tick()

    assert world.fired() == [98, 99, 100]
    assert world.skipped() == [(1, "missed: only the latest 3 are made up")]


def test_a_host_that_dies_while_it_makes_up_leaves_the_rest_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schedule(missed="run_all")
    world.clock.advance(5 * 60 + 30)
    _, later = world.host()
    monkeypatch.setattr("jobs.services.ticker.ROUNDS", 3)
    later.tick()
    assert len(world.fired()) < 5

    world.clock.advance(20)
    monkeypatch.undo()
    _, last = world.host()
    last.tick()
    assert world.fired() == [1, 2, 3, 4, 5]


# --- hosts and stores that stand still -------------------------------------------------------------------------------


def test_a_frozen_host_that_wakes_up_late_makes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other has fired, the job has run, ended and been forgotten; then the first goes on where it was."""
    world.schedule()
    world.clock.advance(60)
    frozen = world.engine.schedules.fire

    def freeze(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        world.clock.advance(7)
        _, other = world.host()
        assert other.tick()["fired"] == 1
        [done] = world.jobs()
        world.end(done.id)
        world.engine.jobs.discard(done.id)
        return frozen(*args, **kwargs)

    monkeypatch.setattr(world.engine.schedules, "fire", freeze)
    world.tick()

    assert world.fired() == []
    assert [record.outcome for record in world.records()] == ["fired"]


def test_a_store_that_is_away_in_between_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.schedule()
    world.clock.advance(60)

    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable

    monkeypatch.setattr(world.engine.schedules, "advance", away)
    with pytest.raises(StoreUnavailable):
        world.tick()
    monkeypatch.undo()
    world.run(10)

    assert world.fired() == [1]
    assert len(world.records()) == 1


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_firing_whose_payload_fits_no_more_is_skipped_with_the_reason_and_stops_no_other(world: World) -> None:
    world.schedule("bad", payload={"number": 3})
    world.schedule("good")
    with registry.restored():
        del registry._types["schedules.work"]

        @job("schedules.work")
        def work(text: str = "") -> None: ...

        world.run(60)

    assert world.fired("good") == [1]
    assert world.fired("bad") == []
    assert "takes no argument 'number'" in world.skipped("bad")[0][1]
    world.definitions._noted_at = float("-inf")
    world.carry()
    assert "takes no argument" in Schedule.objects.get(name="bad").error


def test_an_unknown_type_makes_a_job_that_waits_for_a_worker_that_knows_it(world: World) -> None:
    world.schedule(payload={"number": 3})
    with registry.restored():
        del registry._types["schedules.work"]
        world.run(60)

    assert world.fired() == [1]


def test_a_type_whose_jobs_are_unique_makes_no_second_one(world: World) -> None:
    @job("schedules.unique", unique=True)
    def unique() -> None: ...

    world.schedule(job_type="schedules.unique")
    world.run(120)

    assert world.fired() == [1]
    assert "has the unique key" in world.skipped()[0][1]


def test_what_is_stored_of_a_schedule_and_cannot_be_read_stops_only_itself(world: World) -> None:
    world.schedule("bad")
    world.schedule("good")
    client: Any = world.engine.store.client
    client.hset(f"{world.engine.store.namespace}:{{schedules}}:definitions", "bad", b"\xc1")
    world.run(60)

    assert world.fired("good") == [1]
