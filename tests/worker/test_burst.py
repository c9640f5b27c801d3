"""When a ``--burst`` host is done."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine import Autoscale
from jobs.worker.burst import BurstWatch
from jobs.worker.options import WorkerOptions
from tests.support.steps import Steps
from tests.worker.conftest import Parts


def is_over(parts: Parts, *, slots: bool = True) -> bool:
    ends: list[bool] = []
    watch = BurstWatch(
        parts.engine, WorkerOptions(), lambda: True, lambda pool: slots, on_over=lambda: ends.append(True)
    )
    watch.tick()
    return bool(ends)


def autoscale(**bounds: int) -> Autoscale:
    return Autoscale(target_wait_seconds=1, tolerance_seconds=1, cooldown_seconds=1, **bounds)


@pytest.mark.parametrize(
    ("values", "slots", "over"),
    [
        ({}, True, False),
        ({}, False, True),
        ({"max_running": 1}, True, False),
        ({"max_running": 0}, True, True),
        ({"autoscale": autoscale(min_slots=0, max_slots=3)}, False, False),
    ],
)
def test_it_waits_for_what_may_run_here_sooner_or_later(
    parts: Parts, values: dict[str, Any], slots: bool, over: bool
) -> None:
    Steps(parts.engine).enqueue()
    if values:
        parts.engine.pools.configure("default", **values)

    assert is_over(parts, slots=slots) is over


def test_what_runs_elsewhere_may_come_back(parts: Parts) -> None:
    steps = Steps(parts.engine)
    steps.enqueue()
    job = steps.lease()

    assert not is_over(parts, slots=False)
    steps.complete(job)
    assert is_over(parts)
