"""What a host tells of its processes."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest

from jobs.core.job import moment
from jobs.engine import Engine
from jobs.store.keys import HostKeys
from jobs.worker import presence
from jobs.worker.presence import BEAT_SECONDS, MARGIN_SECONDS, CpuMeter, Presence
from tests.support.clock import ManualClock


def test_processor_time_is_told_as_a_sum_and_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([(100.0, 5.0), (110.0, 12.5), (110.002, 12.51), (111.0, 12.8), (111.0, 12.8)])
    now: Any = None

    def look() -> float:
        nonlocal now
        now = next(looks)
        return now[0]

    monkeypatch.setattr(presence, "monotonic", look)
    monkeypatch.setattr(presence, "cpu_seconds", lambda pid: now[1])
    meter = CpuMeter()

    assert meter.read(7) == (5.0, 0.0)
    assert meter.read(7) == (12.5, 0.75)
    assert meter.read(7) == (12.51, 0.75)  # two beats in a row: too short to tell
    assert meter.read(7) == (12.8, 0.3)
    meter.keep({8})
    assert meter.read(7) == (12.8, 0.0)


def test_a_process_that_is_gone_uses_nothing() -> None:
    meter = CpuMeter()

    assert meter.read(2**30) == (0.0, 0.0)
    assert meter.read(os.getpid())[0] > 0


class QuietHost:
    """A host without children."""

    id = "h"
    state = "consuming"
    children: tuple[Any, ...] = ()

    def state_of(self, child: Any) -> str:
        return "consuming"


def test_a_host_hears_of_its_pause_once_and_looks_again_when_that_ends(engine: Engine, clock: ManualClock) -> None:
    heard: list[str | None] = []
    host: Any = QuietHost()
    beating = Presence(
        engine,
        host,
        "1",
        obey=lambda *_: None,
        hold=lambda pause: heard.append(pause.reason if pause is not None else None),
        enter_anew=lambda: None,
    )
    assert beating.tick() == BEAT_SECONDS

    engine.workers.pause("h", by="ana", reason="disk")
    assert (beating.tick(), beating.tick()) == (BEAT_SECONDS, BEAT_SECONDS)
    engine.workers.pause("h", by="ben", reason="deploy", until=moment(clock.now_ms()) + timedelta(seconds=2))
    assert beating.tick() == 2 + MARGIN_SECONDS
    assert heard == ["disk", "deploy"]

    clock.advance(2 + MARGIN_SECONDS)
    assert beating.tick() == BEAT_SECONDS
    assert heard == ["disk", "deploy", None]


def test_a_host_that_the_store_has_forgotten_enters_anew_what_it_told(engine: Engine) -> None:
    entered: list[int] = []
    host: Any = QuietHost()
    beating = Presence(
        engine, host, "1", obey=lambda *_: None, hold=lambda _: None, enter_anew=lambda: entered.append(1)
    )

    beating.tick()
    beating.tick()
    assert entered == [], "of a host that has just come it knew nothing"

    engine.store.client.delete(HostKeys(engine.store.namespace).workers)
    beating.tick()
    beating.tick()
    assert entered == [1]
