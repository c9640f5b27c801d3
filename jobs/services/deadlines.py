"""Ends what has waited long enough: runs of workflows that have a time limit, signals and approvals that have one."""

from __future__ import annotations

from jobs.engine import Engine
from jobs.runtime.controlling import meet
from jobs.runtime.relaying import Relay, one_run_only

LONGEST_SLEEP = 5.0
"""Seconds. A deadline that is set meanwhile is met at most as much late."""

NONE_SLEEP = 20.0
"""Where there are no runs, which alone have deadlines: of the first that begins all hosts are told, before it does."""

SHORTEST_SLEEP = 0.05


class DeadlineService:
    """Sleeps until the next deadline."""

    name = "deadlines"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._relay = Relay(engine)
        self.every = LONGEST_SLEEP

    def tick(self) -> dict[str, int]:
        control = self._engine.run_control
        met, self.every = 0, LONGEST_SLEEP
        if control.next_deadline() is None:
            if not self._engine.workflows.has_runs():
                self.every = NONE_SLEEP
            return {"met": 0}
        due = control.due_deadlines()
        for deadline in due:
            with one_run_only(deadline.run):
                meet(self._relay, deadline)
                met += 1
        next_at = control.next_deadline()
        if next_at is not None and met == len(due):  # one that cannot be met stays the next
            left = (next_at - control.server_now_ms()) / 1000
            self.every = min(LONGEST_SLEEP, max(SHORTEST_SLEEP, left))
        return {"met": met}
