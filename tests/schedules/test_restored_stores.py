"""A store that was emptied or put back is filled from the rows; nothing fires twice for it, nothing is invented."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.models import Schedule
from jobs.services import carrying
from jobs.services.definitions import Definitions
from tests.schedules.conftest import World


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


def test_a_store_that_goes_back_while_a_host_compares_is_compared_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schedule()
    definitions = world.definitions
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(definitions, "_write_notes", definitions.check_again)
        definitions.tick()

    assert not definitions.is_checked
    definitions.tick()
    assert definitions.is_checked


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
