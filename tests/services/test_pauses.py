"""Pauses end by themselves, and are known everywhere whatever happened to whoever made them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobs.core.job import LeasedJob, moment
from jobs.engine import EVERYTHING, Engine, Scope
from jobs.services.pauses import EVERY_SECONDS, PauseKeeper
from jobs.store.keys import SettingKeys
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock


def test_a_pause_is_ended_when_its_time_is_over_and_its_jobs_run(
    engine: Engine,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue()
    (job,) = lease()
    until = moment(clock.now_ms()) + timedelta(seconds=5)
    engine.pauses.pause(Scope("type", "test.echo"), by="ana", until=until)
    engine.leases.park(ROUTE, [(job.id, job.token, job.type)])
    keeper = PauseKeeper(engine)

    assert keeper.tick() == {"ended": 0}
    assert keeper.every == pytest.approx(5, abs=0.1)
    clock.advance(5)
    assert keeper.tick() == {"ended": 1}
    assert keeper.every == EVERY_SECONDS
    assert not engine.jobs.get(job.id).parked


def test_a_pause_that_its_author_could_not_tell_is_told(
    engine: Engine, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    enqueue()
    keeper = PauseKeeper(engine)
    keeper.tick()
    pause = b'{"by":"ana","at":""}'
    engine.store.run("pause_set", SettingKeys(engine.store.namespace), scope=str(EVERYTHING), pause=pause, only="")

    keeper.tick()

    assert lease() == []


def test_while_nothing_changes_partitions_are_left_alone(
    engine: Engine, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue()
    engine.pauses.pause(EVERYTHING, by="ana")
    told: list[object] = []
    tell = engine.pauses.tell
    monkeypatch.setattr(engine.pauses, "tell", lambda: (told.append(1), tell())[1])
    keeper = PauseKeeper(engine)
    for _ in range(3):
        keeper.tick()

    assert told == [1]
