"""The slots of a pool as threads."""

from __future__ import annotations

import threading

import pytest

from jobs.worker.settlement import Settlement
from jobs.worker.slots import PoolSlots, Slot
from jobs.worker.work import Work
from tests.support.wait import eventually
from tests.worker.conftest import Gate, Parts
from tests.worker.leased import work


def test_slots_follow_their_wanted_number_in_both_directions(parts: Parts, gate: Gate) -> None:
    pool = PoolSlots(
        "default",
        4,
        cells=parts.cells,
        execute=gate.execute,
        settle=lambda batch, settlement: None,
        on_room=lambda: None,
    )
    gate.opened.set()
    works = [work(parts.cells, number) for number in range(40)]
    pool.hand(works[:20])
    eventually(lambda: pool.in_hand == 0)

    pool.resize(1)
    gate.opened.clear()
    pool.hand(works[20:30])
    eventually(lambda: pool.waiting == 9)
    assert len(pool.take_back()) == 9

    pool.resize(3)
    pool.hand(works[30:33])
    eventually(lambda: len(gate.begun) == 20 + 1 + 2)
    gate.opened.set()
    eventually(lambda: pool.in_hand == 0)


def test_a_slot_for_which_no_thread_could_be_had_gets_one_later(
    parts: Parts, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = PoolSlots(
        "default",
        1,
        cells=parts.cells,
        execute=gate.execute,
        settle=lambda batch, settlement: None,
        on_room=lambda: None,
    )
    gate.opened.set()

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            pool.hand([work(parts.cells, 1)])
    pool.hand([work(parts.cells, 2)])

    eventually(lambda: pool.in_hand == 0)
    assert gate.begun == ["job-1", "job-2"]


def test_a_slot_that_dies_of_its_job_is_told_of_for_nobody_else_would_end_it(parts: Parts) -> None:
    def execute(slot: Slot, work: Work, begun: float) -> Settlement:
        raise MemoryError

    failed = threading.Event()
    settled: list[Settlement] = []
    pool = PoolSlots(
        "default",
        1,
        cells=parts.cells,
        execute=execute,
        settle=lambda batch, settlement: settled.append(settlement),
        on_room=lambda: None,
        on_failure=failed.set,
    )
    pool.hand([work(parts.cells, 1)])

    assert failed.wait(30)
    assert not settled
