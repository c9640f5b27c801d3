"""What a host tells of its processes."""

from __future__ import annotations

import os
from typing import Any

import pytest

from jobs.worker import presence
from jobs.worker.presence import CpuMeter


def test_processor_time_is_told_as_a_sum_and_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([(100.0, 5.0), (110.0, 12.5), (110.0, 12.5)])
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
    meter.keep({8})
    assert meter.read(7) == (12.5, 0.0)


def test_a_process_that_is_gone_uses_nothing() -> None:
    meter = CpuMeter()

    assert meter.read(2**30) == (0.0, 0.0)
    assert meter.read(os.getpid())[0] > 0
