"""What a child writes down of its batches, and when its supervisor knows it."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from jobs.core.job import Route
from jobs.worker.child_handle import ChildHandle, HeldLease
from jobs.worker.ledger import Ledger, Pen
from jobs.worker.messages import Closed, LedgerFull, Opened
from tests.worker.handles import OtherSide, child_handle

ROUTE = Route("default", 1, 0)
HELD = HeldLease(ROUTE, "a", "token")
OPENED = Opened(1, "token", ROUTE, ["a"])


@pytest.fixture
def pair() -> Iterator[tuple[ChildHandle, OtherSide]]:
    with child_handle() as (child, other):
        yield child, other


def test_whoever_asks_what_a_child_holds_knows_all_that_it_has_written(pair: tuple[ChildHandle, OtherSide]) -> None:
    child, other = pair
    other.ledger.write(OPENED)
    assert child.leases() == (1, [HELD])

    other.ledger.write(Opened(2, "next", ROUTE, ["b"]))
    other.memory.new_cell().enter(2, "b", 1)
    assert [started.lease for started in child.started()] == [HeldLease(ROUTE, "b", "next")]

    other.ledger.write(Closed(1))
    assert child.leases() == (2, [HeldLease(ROUTE, "b", "next")])


def test_a_lease_that_was_written_down_can_be_dropped_and_cancelled_at_once(
    pair: tuple[ChildHandle, OtherSide],
) -> None:
    child, other = pair
    other.ledger.write(OPENED)
    child.cancel([HELD], 7.0)
    assert child.cancelled_at(HELD) == 7.0

    other.ledger.write(Opened(2, "next", ROUTE, ["b"]))
    child.drop({HeldLease(ROUTE, "b", "next")})
    assert child.leases() == (2, [HELD])


def test_an_entry_wakes_nobody(pair: tuple[ChildHandle, OtherSide]) -> None:
    """The supervisor rests at the links; a batch that comes and goes is nothing to it."""
    child, other = pair
    other.ledger.write(OPENED)
    other.ledger.write(Closed(1))
    assert select.select([child.link], [], [], 0)[0] == []


def test_what_was_written_outlives_its_writer() -> None:
    ours, its = socket.socketpair()
    Pen(its, on_full=lambda: None).write(OPENED)
    its.close()

    ledger = Ledger(ours)
    assert ledger.read() == [OPENED]
    assert ledger.read() == []
    ledger.close()


@pytest.mark.parametrize("ids", [["a"], ["x" * 200] * 1000], ids=["many entries", "large ones"])
def test_a_full_ledger_is_read_when_its_writer_asks_and_nothing_is_lost(
    pair: tuple[ChildHandle, OtherSide], ids: list[str]
) -> None:
    """In its order: a batch is known before those after it, and closed after it was opened."""
    child, other = pair
    number = 1_000 if len(ids) == 1 else 5

    def write() -> None:
        for batch in range(1, number + 1):
            other.ledger.write(Opened(batch, f"token-{batch}", ROUTE, ids))
            if batch != number:
                other.ledger.write(Closed(batch))

    writer = threading.Thread(target=write)
    writer.start()
    asked = 0
    while writer.is_alive():
        if select.select([child.link], [], [], 0.05)[0]:
            asked += len([message for message in child.link.receive() if isinstance(message, LedgerFull)])
            child.read_ledger()
    assert asked > 0
    newest, held = child.leases()
    assert newest == number
    assert {lease.token for lease in held} == {f"token-{number}"}
    assert len(held) == len(ids)


def test_writing_to_a_supervisor_that_is_gone_does_not_wait() -> None:
    """The end of the link says so, and ends the child."""
    ours, its = socket.socketpair()
    ours.close()
    Pen(its, on_full=lambda: None).write(Opened(1, "token", ROUTE, ["x" * 200] * 5_000))
    its.close()


def test_a_handle_that_was_closed_still_answers(pair: tuple[ChildHandle, OtherSide]) -> None:
    """Threads that walk over the children of a moment ago may ask it yet."""
    child, other = pair
    other.ledger.write(OPENED)
    assert child.leases() == (1, [HELD])
    child.close()
    assert child.leases() == (1, [HELD])
