from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.engine import Engine
from jobs.engine.series import KEPT_LIVE
from jobs.services import historian as historian_module
from jobs.services.historian import IDLE_SECONDS, Historian
from tests.support.clock import ManualClock
from tests.support.steps import everything


def test_what_was_counted_becomes_history_once_its_time_is_over(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue()
    historian = Historian(engine)
    assert historian.tick() == {"folded": 0}

    clock.advance(10 * (KEPT_LIVE + 1))
    later = historian_module.monotonic() + IDLE_SECONDS
    monkeypatch.setattr(historian_module, "monotonic", lambda: later)

    assert historian.tick() == {"folded": 1}
    assert historian.tick() == {"folded": 0}
    assert not any(":live:" in key for key in everything(engine.store))


def test_a_store_without_jobs_has_no_history(engine: Engine) -> None:
    assert Historian(engine).tick() == {"folded": 0}


def test_where_nothing_was_counted_it_does_not_look_again_soon(
    engine: Engine, enqueue: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue()
    looks: list[object] = []
    monkeypatch.setattr(engine.upkeep, "fold_figures", lambda route: looks.append(route) or 0)
    historian = Historian(engine)
    for _ in range(3):
        historian.tick()
    assert len(looks) == 1
