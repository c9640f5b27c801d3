"""Each nominal time makes one job or leaves one reason, whatever happens in between."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from jobs import Context, job
from jobs.api.producer import led_through
from jobs.core.job import moment
from jobs.core.pause import EVERYTHING
from jobs.exceptions import StoreUnavailable
from jobs.models import Schedule
from jobs.registry import registry
from jobs.services.ticker import IDLE_SECONDS
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


# --- enqueue middleware ----------------------------------------------------------------------------------------------


def stamped(call: Any) -> Any:
    """A middleware that adds to the request, tries to move it, and enqueues something of its own beside it."""

    def enqueue(request: Any) -> Any:
        if request.spec.schedule is not None:
            stamp_job.enqueue(number=0)
            changes = {"meta": {"origin": "middleware"}, "pool": "elsewhere", "schedule": "another"}
            request.spec = msgspec.structs.replace(request.spec, **changes)
            request.payloads = [b'{"number": 5}']
        return call(request)

    return enqueue


def refusing(call: Any) -> Any:
    def enqueue(request: Any) -> Any:
        raise ZeroDivisionError("no")

    return enqueue


def dropping(call: Any) -> Any:
    return lambda request: []


@job("schedules.stamp")
def stamp_job(number: int) -> None: ...


@pytest.fixture
def through(world: World, settings: Any) -> Any:
    """Has the project's enqueue middleware be these, and a host that knows them."""

    def use(*names: str) -> None:
        paths = [f"{__name__}.{name}" for name in names]
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": paths}
        world.ticker._through = led_through

    return use


def test_jobs_of_schedules_pass_the_enqueue_middleware_and_stay_jobs_of_their_firing(
    world: World, through: Any
) -> None:
    through("stamped")
    world.schedule()
    world.run(120)

    assert world.fired() == [1, 2]
    assert {(job.pool, job.meta["origin"], job.payload["number"]) for job in world.jobs()} == {
        ("default", "middleware", 5)
    }


@pytest.mark.parametrize(
    ("middleware", "reason"),
    [
        ("refusing", "An enqueue middleware failed: ZeroDivisionError: no"),
        ("dropping", "An enqueue middleware did not send it on."),
    ],
)
def test_a_firing_that_enqueue_middleware_stops_is_skipped_and_says_why(
    world: World, through: Any, middleware: str, reason: str
) -> None:
    through(middleware)
    world.schedule()
    world.run(60)

    assert world.fired() == []
    assert world.skipped() == [(1, reason)]


# --- pauses, bounds, jitter ------------------------------------------------------------------------------------------


def test_firings_inside_a_pause_are_recorded_and_never_made_up(world: World) -> None:
    row = world.schedule(missed="run_all")
    world.run(90)
    row.pause(by="ana", at=world.now)
    row.save()
    world.carry()
    world.run(120)
    row.resume(by="ana", at=world.now)
    row.save()
    world.carry()
    world.run(60)

    assert world.fired() == [1, 4]
    assert world.skipped() == [(2, "the schedule is paused")]
    [paused] = [record for record in world.records() if record.outcome == "skipped"]
    assert (paused.count, world.minutes(moment(paused.until or 0))) == (2, 3)


def test_a_long_pause_is_one_record_and_pushes_no_firing_out_of_the_history(world: World) -> None:
    row = world.schedule(missed="run_all")
    for begin in ("first", "second"):
        world.run(60)
        row.pause(by="ana", reason=begin, at=world.now)
        row.save()
        world.carry()
        world.run(300 * 60)
        row.resume(by="ana", at=world.now)
        row.save()
        world.carry()
    world.run(60)

    assert [(record.outcome, record.count) for record in world.records()] == [
        ("fired", 1),
        ("skipped", 300),
        ("fired", 1),
        ("skipped", 300),
        ("fired", 1),
    ]


def test_nothing_of_two_pauses_is_made_up_by_hosts_that_slept_through_both(world: World) -> None:
    row = world.schedule(missed="run_all")
    for began, ended in ((2.5, 4.5), (6.5, 7.5)):
        row.pause(by="ana", at=world.now + timedelta(minutes=began))
        row.resume(by="ana", at=world.now + timedelta(minutes=ended))
        row.save()
    world.carry()
    world.clock.advance(8.5 * 60)
    _, later = world.host()
    later.tick()

    assert world.fired() == [1, 2, 5, 6, 8]


def test_nothing_of_a_pause_is_made_up_by_hosts_that_were_away_all_the_time(world: World) -> None:
    row = world.schedule(missed="run_all")
    row.pause(by="ana", at=world.now + timedelta(minutes=2, seconds=30))
    row.resume(by="ana", at=world.now + timedelta(minutes=4, seconds=30))
    row.save()
    world.carry()
    world.clock.advance(6.5 * 60)
    _, later = world.host()
    later.tick()

    assert world.fired() == [1, 2, 5, 6]
    assert world.skipped() == [(3, "the schedule was paused")]


def test_while_everything_is_paused_firings_are_recorded_as_skipped(world: World) -> None:
    world.schedule(missed="run_all")
    world.engine.pauses.pause(EVERYTHING, by="ana")
    world.run(120)
    world.engine.pauses.resume(EVERYTHING)
    world.run(60)

    assert world.fired() == [3]
    assert world.skipped() == [(1, "the scheduler is paused")]


def test_after_its_last_firing_a_schedule_is_over(world: World) -> None:
    world.schedule(max_firings=2)
    world.run(300)

    assert world.fired() == [1, 2]
    assert world.ticker.every == IDLE_SECONDS


def test_a_limit_that_is_raised_opens_it_again(world: World) -> None:
    world.schedule(max_firings=1)
    world.run(130)
    Schedule.objects.update(max_firings=2)
    world.carry()
    world.run(60)

    assert world.fired() == [1, 3]


def test_once_fires_once(world: World) -> None:
    world.schedule(kind="once", run_at=world.now + timedelta(seconds=90))
    world.run(300)

    assert world.fired() == [1.5]


def test_a_jitter_has_nothing_early(world: World) -> None:
    world.schedule(jitter_seconds=30)
    world.run(600)

    delays = [(record.at - record.due) / 1000 for record in world.records()]
    assert len(delays) >= 9
    assert 0 <= min(delays) < max(delays) <= 31
    assert world.fired() == [float(minute) for minute in range(1, len(delays) + 1)]


# --- overlap ---------------------------------------------------------------------------------------------------------


def test_skip_leaves_out_what_would_run_beside_the_job_before(world: World) -> None:
    world.schedule(overlap="skip")
    world.run(60)
    first = world.jobs()[0].id
    world.run(60)
    world.end(first)
    world.run(60)

    assert world.fired() == [1, 3]
    assert world.skipped() == [(2, f"the job before has not ended: {first}")]


def test_queue_one_lets_one_wait_until_the_job_before_has_ended(world: World) -> None:
    world.schedule(overlap="queue_one")
    world.run(180)
    assert world.fired() == [1]

    world.end(world.jobs()[0].id)
    world.run(2)
    assert world.fired() == [1, 2]
    assert world.skipped() == [(3, "another firing waits already")]


def test_cancel_old_ends_a_waiting_job_and_takes_its_place(world: World) -> None:
    world.schedule(overlap="cancel_old")
    world.run(120)

    assert [job.state for job in world.jobs()] == ["cancelled", "ready"]


def test_cancel_old_waits_for_a_job_that_is_being_cancelled(world: World) -> None:
    world.schedule(overlap="cancel_old")
    world.run(60)
    running = world.lease(world.jobs()[0].id)
    world.run(60)
    assert world.fired() == [1]
    assert world.engine.jobs.get(running.id).cancel_requested

    world.engine.leases.release(running.route, [(running.id, running.token)])
    world.run(1)
    assert world.fired() == [1, 2]


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


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missed", ["skip", "run_once", "run_all"])
def test_a_servers_clock_that_jumps_an_hour_ahead_makes_no_storm(world: World, missed: str) -> None:
    world.schedule(missed=missed)
    ticker = world.ticker
    ahead = 0.0
    ticker._elapsed = lambda: world.clock.now_ms() / 1000 - ahead
    world.run(90)
    world.clock.advance(3600)
    ahead = 3600
    for _ in range(90):
        world.clock.advance(1)
        ticker.tick()

    fired = world.fired()
    assert fired == [1, 62, 63]
    assert world.skipped() == [(2, "the server's clock jumped over it")]


def test_a_servers_clock_that_jumps_back_an_hour_repeats_nothing(world: World) -> None:
    world.schedule()
    world.run(180)
    world.clock.advance(-3600)
    world.run(3600 + 60)

    assert world.fired() == [1, 2, 3, 4]


def test_a_host_that_is_frozen_in_the_middle_of_a_call_sees_no_jump(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schedule(missed="run_all")
    world.run(30)
    take = world.engine.schedules.take

    def frozen(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        world.clock.advance(90)
        return take(*args, **kwargs)

    monkeypatch.setattr(world.engine.schedules, "take", frozen)
    world.tick()

    assert world.fired() == [1, 2]


def test_a_machine_that_slept_has_missed_its_firings(world: World) -> None:
    """Its own clock went on: that is downtime and no jump."""
    world.schedule(missed="run_once")
    world.run(30)
    world.clock.advance(3600)
    world.tick()

    assert world.fired() == [60]
