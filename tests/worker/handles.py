"""A child as its supervisor knows it, of which only the link, the ledger and the shared memory are real."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.worker import cells
from jobs.worker.cells import Cells
from jobs.worker.child_handle import ChildHandle
from jobs.worker.ledger import Pen
from jobs.worker.link import Link
from jobs.worker.messages import LedgerFull
from jobs.worker.nursery import Conception


class OtherSide:
    """What the child has in its hands: its ends of link and ledger, and its cells."""

    def __init__(self, link: socket.socket, ledger: socket.socket, memory: Cells) -> None:
        self.link = Link.of_child(link)
        self.ledger = Pen(ledger, on_full=lambda: self.link.send(LedgerFull()))
        self.memory = memory


@contextmanager
def child_handle() -> Iterator[tuple[ChildHandle, OtherSide]]:
    link, its_link = socket.socketpair()
    ledger, its_ledger = socket.socketpair()
    fd = cells.create()
    other = OtherSide(its_link, its_ledger, Cells(fd))
    child = ChildHandle(1, "host.1", Conception(link, ledger, fd))
    yield child, other
    other.link.close()
    its_ledger.close()
    child.close()
