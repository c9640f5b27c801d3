"""Where a child writes down which batches it holds, for its supervisor to read whenever it wants to know.

Nobody is woken by an entry: most batches are over before anybody asks for them, and a supervisor that wakes up takes
the processor from the job that is about to begin. What was written outlives the child: it stands in a socket.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any

from jobs.worker.link import Link
from jobs.worker.messages import Closed, Opened

FULL_SECONDS = 0.05
"""A reader that was asked to make room is asked again after as long."""


class Pen:
    """The child's end; ``write`` from any thread. ``on_full`` is to make the supervisor read."""

    def __init__(self, endpoint: socket.socket, on_full: Callable[[], object]) -> None:
        self._link = Link(endpoint, Any, waits=False)
        self._on_full = on_full

    def write(self, entry: Opened | Closed) -> None:
        """When this returns the supervisor will find it, whatever becomes of this process."""
        self._link.send(entry)
        while self._link.has_unsent:
            self._on_full()
            select.select([], [self._link], [], FULL_SECONDS)
            self._link.push()


class Ledger:
    """The supervisor's end."""

    def __init__(self, endpoint: socket.socket) -> None:
        self._link = Link(endpoint, Opened | Closed, waits=False)

    def read(self) -> list[Opened | Closed]:
        """What was written since; does not wait. From one thread at a time."""
        return self._link.receive_all()

    def close(self) -> None:
        self._link.close()
