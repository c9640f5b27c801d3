"""Pauses, the last firing, jitter: when a schedule does not fire, or not at once."""

from __future__ import annotations

from datetime import timedelta

from jobs.core.job import moment
from jobs.core.pause import EVERYTHING
from jobs.models import Schedule
from jobs.services.ticker import IDLE_SECONDS
from tests.schedules.conftest import World


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
