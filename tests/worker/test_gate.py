"""Short jobs go through one slot; nothing waits for a slot that is stuck."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from jobs.worker.gate import SHORT_SECONDS, Gate
from tests.support.wait import eventually


class Line:
    """A pool's counts, as the gate asks for them."""

    def __init__(self) -> None:
        self.waiting = 0
        self.ended = 0
        self.gate = Gate(lambda: self.waiting, lambda: self.ended)

    def come(self, slot: str, inside: list[str]) -> threading.Thread:
        """A slot that wants to take work, in a thread of its own."""
        thread = threading.Thread(target=lambda: self.gate.enter(slot, 30.0) and inside.append(slot), daemon=True)
        thread.start()
        return thread


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.mark.parametrize("mean", [None, SHORT_SECONDS * 1.01, 3600.0])
def test_all_slots_may_work_while_jobs_are_long_or_unknown(line: Line, mean: float | None) -> None:
    line.gate.follow(0.0)
    line.gate.follow(mean)

    assert [line.gate.enter(slot, 0.0) for slot in "abc"] == [True, True, True]


def test_one_slot_works_while_jobs_are_short_and_the_others_stay_out(line: Line) -> None:
    line.gate.follow(0.00001)
    line.waiting = 5

    assert line.gate.enter("a", 0.0)
    assert line.gate.enter("a", 0.0)
    line.gate._watchman = "b"
    assert not line.gate.enter("c", 0.01)


def test_the_others_come_in_when_jobs_grow_long(line: Line) -> None:
    line.gate.follow(0.00001)
    line.gate.enter("a", 0.0)
    line.gate._watchman = "b"
    inside: list[str] = []
    line.come("c", inside)
    line.come("d", inside)

    line.gate.follow(1.0)

    eventually(lambda: sorted(inside) == ["c", "d"])


def test_when_the_one_slot_is_stuck_all_others_come_in_soon(line: Line) -> None:
    line.gate.follow(0.00001)
    line.waiting = 5
    line.gate.enter("a", 0.0)
    inside: list[str] = []
    for slot in "bcd":
        line.come(slot, inside)

    eventually(lambda: sorted(inside) == ["b", "c", "d"])


def test_while_the_one_slot_gets_on_the_others_stay_out_however_long(line: Line) -> None:
    looks = count()
    line.gate = Gate(lambda: line.waiting, lambda: next(looks))  # at each look another one has ended
    line.gate.follow(0.00001)
    line.waiting = 5
    line.gate.enter("a", 0.0)
    inside: list[str] = []
    watchman = line.come("b", inside)

    eventually(lambda: next(looks) > 10)
    assert inside == []
    line.waiting = 0
    watchman.join(5.0)
    assert inside == ["b"]  # with nothing to watch it waits at the queue, like everybody


def test_a_slot_that_leaves_lets_those_in_that_waited_outside(line: Line) -> None:
    line.gate.follow(0.00001)
    line.gate.enter("a", 0.0)
    line.gate._watchman = "b"
    inside: list[str] = []
    line.come("c", inside)

    line.gate.leave("a")

    eventually(lambda: inside == ["c"])


def test_a_watchman_that_works_leaves_the_watch_to_another(line: Line) -> None:
    line.gate.follow(0.00001)
    line.gate._watchman = "a"
    line.gate.enter("a", 0.0)
    line.waiting = 5
    inside: list[str] = []

    line.come("b", inside)

    eventually(lambda: inside == ["b"])
