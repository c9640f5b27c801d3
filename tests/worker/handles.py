"""A child as its supervisor knows it, of which only the link and the shared memory are real."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.worker import cells
from jobs.worker.cells import Cells
from jobs.worker.child_handle import ChildHandle
from jobs.worker.link import Link
from jobs.worker.nursery import Conception


class OtherSide:
    """What the child has in its hands: its end of the link and its cells."""

    def __init__(self, endpoint: socket.socket, memory: Cells) -> None:
        self.link = Link.of_child(endpoint)
        self.memory = memory


@contextmanager
def child_handle() -> Iterator[tuple[ChildHandle, OtherSide]]:
    ours, theirs = socket.socketpair()
    fd = cells.create()
    other = OtherSide(theirs, Cells(fd))
    child = ChildHandle(1, "host.1", Conception(ours, fd))
    yield child, other
    other.link.close()
    child.link.close()
