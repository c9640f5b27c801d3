"""How many jobs to hold ready for a pool's slots, beyond those that run.

Short jobs are fetched by the hundred, or the round trip to the server would cost more than they do. Long ones are
never held: another process could have started them. In between the answer is what all slots finish within a moment.
"""

from __future__ import annotations

HORIZON_SECONDS = 0.05
"""A job held ready waits about this long at most, if the jobs before it are as short as the last ones were."""

MOST = 5000
"""As many as five lease calls may bring: while one is under way, behind the completions of earlier ones, the slots go
on with what the others brought. With two they ran dry, and server and slots worked in turns."""

_WEIGHT = 0.3
"""Of the newest measurement in the running mean: three or four measurements decide."""


class Lookahead:
    """Follows the run time of a pool's jobs. Not thread-safe: the fetcher owns it."""

    def __init__(self) -> None:
        self.mean_seconds: float | None = None
        """What a job takes; None until the first has ended."""
        self._ended = 0
        self._busy_seconds = 0.0

    def measure(self, ended: int, busy_seconds: float) -> None:
        """The totals of a pool's slots so far: jobs ended, and time spent in them."""
        if ended > self._ended:
            self._learn((busy_seconds - self._busy_seconds) / (ended - self._ended))
            self._ended, self._busy_seconds = ended, busy_seconds

    def stalled(self, seconds: float) -> None:
        """No slot has finished for so long although jobs wait: they are not short any more."""
        self.mean_seconds = max(seconds, self.mean_seconds or 0.0)

    def jobs(self, slots: int) -> int:
        """How many to hold for as many slots; 0 until the first job has ended."""
        if self.mean_seconds is None:
            return 0
        return min(MOST, int(slots * HORIZON_SECONDS / max(self.mean_seconds, 1e-6)))

    def _learn(self, seconds: float) -> None:
        old = self.mean_seconds
        self.mean_seconds = seconds if old is None else old + _WEIGHT * (seconds - old)
