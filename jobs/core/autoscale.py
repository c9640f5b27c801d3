"""How many slots a pool should have, judged by how long its jobs wait. What is seen goes in, a decision comes out.

The rule steers the wait into a band around its target. Within the band nothing moves. Outside of it the number of slots
changes in proportion: towards the nearer edge while the wait is off by less than half its target, towards the target
itself when it is off by more. An empty line gives a tenth back each time.
"""

from __future__ import annotations

from math import floor, inf, isfinite

import msgspec

FAR = 0.5
"""Off by more than this part of the target, the rule aims at the target itself and no longer at the band's edge."""

GIVEN_BACK = 0.1
"""Of the slots, each time that nothing waits."""

BUSY = 0.8
"""Jobs wait while less than this part of the slots is in use: then it is not slots that they wait for."""

SLOTS_ARE_FREE = "slots_are_free"
"""The reason then. With few slots a single look may say so by chance, of one that is between two jobs."""


class AutoscaleRule(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for. Slots are per worker process, times are seconds.

    ``cooldown_seconds``: at least so long between two changes, so that each is judged by what it did.
    """

    min_slots: int
    max_slots: int
    target_wait_seconds: float
    tolerance_seconds: float = 0.0
    cooldown_seconds: float = 30.0

    @property
    def band(self) -> tuple[float, float]:
        """Between these waits all is well, seconds."""
        return (
            max(0.0, self.target_wait_seconds - self.tolerance_seconds),
            self.target_wait_seconds + self.tolerance_seconds,
        )

    @property
    def problem(self) -> str | None:
        """The reason why this rule can decide nothing; None where it can."""
        if not 0 <= self.min_slots <= self.max_slots or self.max_slots == 0:
            return "invalid_inputs"
        if not self.target_wait_seconds > 0:
            return "target_wait_nonpositive"
        waits = (self.target_wait_seconds, self.tolerance_seconds, self.cooldown_seconds)
        return None if all(isfinite(wait) and wait >= 0 for wait in waits) else "invalid_wait_params"


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as the rule sees it. ``slots`` per worker process; the counts are over all workers.

    ``predicted_wait_seconds``: of a job that arrives now, by measured rates; None where nothing was measured.
    ``oldest_wait_seconds``: how long the longest waiting job has waited, None where none waits.
    ``since_change_seconds``: since the last change that was carried out.
    """

    slots: int
    workers: int
    ready: int = 0
    running: int = 0
    predicted_wait_seconds: float | None = None
    oldest_wait_seconds: float | None = None
    is_paused: bool = False
    max_running: int | None = None
    since_change_seconds: float = inf

    @property
    def wait_seconds(self) -> float | None:
        """The wait that counts: the longer one of what is predicted and what was already waited.

        The prediction is an average and knows nothing of jobs that are stuck behind others; the age of the oldest says
        nothing of the thousands that arrived this second.
        """
        known = [wait for wait in (self.predicted_wait_seconds, self.oldest_wait_seconds) if wait is not None]
        return max(known) if known else None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """``slots`` per worker process from now on, and the one word why. ``wanted``: before the bounds were applied."""

    slots: int
    reason: str
    wanted: int | None = None


def decide(rule: AutoscaleRule, seen: Sighting) -> Decision:
    """How many slots the pool should have. Never raises; what cannot be judged stays as it is.

    Bounds are kept at once; all else waits for the cooldown.
    """
    if rule.problem:
        return Decision(slots=seen.slots, reason=rule.problem)
    bounded = _clamped(rule, seen.slots)
    if bounded != seen.slots:
        return Decision(slots=bounded, reason="outside_of_bounds")
    if reason := _holds_still(rule, seen):
        return Decision(slots=seen.slots, reason=reason)
    wanted, reason = _proportion(rule, seen)
    return Decision(slots=_clamped(rule, wanted), reason=reason, wanted=wanted)


def _holds_still(rule: AutoscaleRule, seen: Sighting) -> str | None:
    """Why nothing should move whatever the wait; None where the wait decides."""
    if seen.is_paused:
        return "paused"
    if seen.workers <= 0:
        return "no_workers"
    if seen.since_change_seconds < rule.cooldown_seconds:
        return "cooling_down"
    if (seen.wait_seconds or 0.0) > rule.band[1] and seen.slots > 0:
        # More slots would stand idle: a limit holds the jobs back, or their keys do.
        if seen.max_running is not None and seen.running >= seen.max_running:
            return "held_by_max_running"
        if seen.running < BUSY * seen.slots * seen.workers:
            return SLOTS_ARE_FREE
    return None


def _proportion(rule: AutoscaleRule, seen: Sighting) -> tuple[int, str]:
    """The slots that would bring the wait to where it should be, and why."""
    low, high = rule.band
    wait, target = seen.wait_seconds, rule.target_wait_seconds
    if wait is None or wait <= 0:
        if seen.ready > 0:  # something waits, and nothing is known of its wait yet
            return max(1, seen.slots), "nothing_measured"
        return floor(seen.slots * (1 - GIVEN_BACK)), "predicted_wait_zero"
    if seen.slots == 0:
        return 1, "jobs_wait_without_slots"
    if low <= wait <= high:
        return seen.slots, "in_tolerance_band"
    if abs(wait - target) <= FAR * target:
        edge, reason = (high, "above_upper_boundary") if wait > high else (low, "below_lower_boundary")
        return _scaled(seen, wait / edge), reason
    side = "above" if wait > target else "below"
    return _scaled(seen, wait / target), f"deviation_large_{side}_center"


def _scaled(seen: Sighting, factor: float) -> int:
    """Slots per worker when all slots together are multiplied by ``factor``."""
    return _rounded(_rounded(seen.slots * seen.workers * factor) / seen.workers)


def _rounded(value: float) -> int:
    """To the nearest whole number, halves upwards: Python's own rounding would take 2.5 for 2 and 3.5 for 4."""
    return floor(min(value, 2.0**53) + 0.5)


def _clamped(rule: AutoscaleRule, slots: int) -> int:
    return min(max(slots, rule.min_slots), rule.max_slots)
