"""How fast a pool works, and how long a job that comes now will wait there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobs.core.figures import merged
from jobs.core.pause import FOR_EVER_MS
from jobs.core.prediction import predicted_wait
from jobs.engine.series import Recent
from jobs.store.codec.values import whole_number


class PartitionFacts:
    """What one partition says of itself."""

    def __init__(
        self, counts: dict[str, int], parked: dict[bytes, bytes], run_ms: bytes | None, alarm: bytes | None
    ) -> None:
        self.counts = counts
        self.parked = sum(whole_number(count) or 0 for count in parked.values())
        self.run_ms = _number(run_ms)  # mean of earlier times; see lua/figures_fold.lua
        self.clock_jumped_at = whole_number(alarm) or 0  # server ms; see lua/job_recover.lua
        self.oldest_ready_at = 0


class Pace(NamedTuple):
    """How fast a pool works: attempts ended and jobs enqueued per second lately, and the mean seconds of an attempt."""

    rate: float
    coming: float
    run_seconds: float | None

    @classmethod
    def of(cls, recent: Sequence[Recent], parts: Sequence[PartitionFacts]) -> Pace:
        """What was measured lately, or else what was known before."""
        lately = merged(part.figures for part in recent)
        before = [part.run_ms for part in parts if part.run_ms is not None]
        run_seconds = lately.run_seconds
        if run_seconds is None and before:
            run_seconds = sum(before) / len(before) / 1000
        seconds = recent[0].seconds if recent else 1.0
        return cls(lately.ended / seconds, lately.count("enqueued") / seconds, run_seconds)


def expected_wait(
    *, waiting: int, parked: int, slots: int, pace: Pace, oldest_age: float, paused_until: int, now_ms: int
) -> float | None:
    """Seconds that a job that comes now will wait, by ``jobs.core.prediction``; None where nobody can know: the pool,
    or each host of it, is paused without an end, or only parked jobs wait."""
    if paused_until >= FOR_EVER_MS or (parked and not waiting):
        return None
    seconds = predicted_wait(
        waiting=waiting,
        slots=slots,
        run_seconds=pace.run_seconds,
        rate=pace.rate,
        oldest_age=oldest_age,
        paused_for=max(0, paused_until - now_ms) / 1000,
    )
    return round(seconds, 3)


def _number(raw: bytes | None) -> float | None:
    try:
        return float(raw) if raw else None
    except ValueError:
        return None
