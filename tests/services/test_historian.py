from __future__ import annotations

from collections.abc import Callable

from jobs.engine import Engine
from jobs.engine.series import KEPT_LIVE
from jobs.services.historian import Historian
from tests.support.clock import ManualClock
from tests.support.steps import everything


def test_what_was_counted_becomes_history_once_its_time_is_over(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]]
) -> None:
    enqueue()
    historian = Historian(engine)
    assert historian.tick() == {"folded": 0}

    clock.advance(10 * (KEPT_LIVE + 1))

    assert historian.tick() == {"folded": 1}
    assert historian.tick() == {"folded": 0}
    assert not any(":live:" in key for key in everything(engine.store))


def test_a_store_without_jobs_has_no_history(engine: Engine) -> None:
    assert Historian(engine).tick() == {"folded": 0}
