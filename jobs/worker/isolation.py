"""Runs jobs under suspicion in processes of their own.

When a worker dies, every job that ran in it may be the cause, and all of them are charged with the crash. Would they go
back into one process, the poisonous one would take its neighbours down again and again until all were dead. So a job
that has been charged before runs alone: if its process dies now, there is no doubt whose fault it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jobs.worker.messages import Message, RunAlone
from jobs.worker.settlement import Elsewhere, Settlement

if TYPE_CHECKING:
    from jobs.worker.slots import Slot
    from jobs.worker.work import Work


class Isolation:
    """The child's side: its slot stays taken while the job runs elsewhere, so that no pool runs more than its slots."""

    def __init__(self, send: Callable[[Message], object]) -> None:
        self._send = send
        self._waiting: dict[tuple[str, str], Slot] = {}  # by lease: a job that was lost may be here again

    def run(self, slot: Slot, work: Work) -> Settlement:
        """Blocks until that process has ended. It reports the job's end itself."""
        self._waiting[work.lease.id, work.lease.token] = slot
        self._send(RunAlone(work.lease, work.batch.leased_at, work.batch.clock_offset))
        slot.replies.get()
        return Elsewhere(work.lease.id)

    def ended(self, lease: tuple[str, str]) -> None:
        """From the control thread: the supervisor says so of the process for this lease (job id, token)."""
        if (slot := self._waiting.pop(lease, None)) is not None:
            slot.replies.put(None)
