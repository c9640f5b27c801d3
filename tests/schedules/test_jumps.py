"""The server's clock jumps, a host stands still, a machine sleeps: no storm, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schedules.conftest import World


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
