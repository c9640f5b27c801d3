"""Slots that wait while their jobs run in processes of their own."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.worker.isolation import Isolation
from jobs.worker.messages import Message
from jobs.worker.settlement import Elsewhere
from jobs.worker.slots import Slot
from tests.support.wait import eventually
from tests.worker.leased import leased


class Waiting(threading.Thread):
    """A slot with a job under suspicion."""

    def __init__(self, isolation: Isolation, token: str) -> None:
        super().__init__(daemon=True)
        nothing: Any = SimpleNamespace()
        batch = SimpleNamespace(leased_at=0.0, clock_offset=0.0)
        self._isolation = isolation
        self._slot = Slot(nothing, nothing, nothing, nothing)
        self._work: Any = SimpleNamespace(lease=leased(token=token), batch=batch)
        self.settlement: object = None

    def run(self) -> None:
        self.settlement = self._isolation.run(self._slot, self._work)


@pytest.mark.parametrize("first", [0, 1])
def test_a_job_that_was_lost_and_came_back_keeps_two_slots_and_each_waits_for_its_own_process(first: int) -> None:
    asked: list[Message] = []
    isolation = Isolation(asked.append)
    slots = [Waiting(isolation, token) for token in ("token-1", "token-2")]
    for number, slot in enumerate(slots, start=1):
        slot.start()
        eventually(lambda number=number: len(asked) == number)

    isolation.ended(("job-1", f"token-{first + 1}"))
    slots[first].join(30)
    assert slots[first].settlement == Elsewhere("job-1")
    assert slots[1 - first].settlement is None, "its process goes on"

    isolation.ended(("job-1", f"token-{2 - first}"))
    slots[1 - first].join(30)
    assert slots[1 - first].settlement == Elsewhere("job-1")
