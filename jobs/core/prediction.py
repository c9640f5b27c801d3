"""How long a job that comes now will wait for a slot, judged from what was measured."""

from __future__ import annotations

UNMEASURED_RUN_SECONDS = 0.001
"""Until the first attempt has ended: so short that nobody acts on it, and still not nothing."""

SHORTEST_SECONDS = 0.001
"""Whoever waits, waits: never zero."""

LIVE_SECONDS = 30.0
"""The time over which ``rate`` is measured."""


def predicted_wait(
    *, waiting: int, slots: int, run_seconds: float | None, rate: float, oldest_age: float, paused_for: float = 0.0
) -> float:
    """Seconds until a job that is enqueued now is taken; 0 only where none waits.

    ``waiting``: jobs before it. ``slots``: those that can be used, over all workers. ``run_seconds``: the mean time of
    an attempt. ``rate``: attempts ended per second lately. ``oldest_age``: seconds that the first in line has waited.
    ``paused_for``: seconds until the pool goes on.

    - A line that is older than the measured time was served at ``rate`` all the while: that is how it will go on.
    - Else the rate may be that of an idle pool; what the slots can do tells more.
    - Where nothing moves, it will be at least as long as the first has waited already.
    """
    if waiting <= 0:
        return 0.0
    if rate > 0 and (not slots or oldest_age >= LIVE_SECONDS):
        seconds = waiting / rate
    else:
        seconds = waiting * (run_seconds or UNMEASURED_RUN_SECONDS) / max(1, slots)
        if rate <= 0:
            seconds = max(seconds, oldest_age)
    return paused_for + max(SHORTEST_SECONDS, seconds)
