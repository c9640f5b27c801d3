"""Work that other threads leave for a thread that sits in a selector."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue


class Mailbox:
    """``post`` from any thread; the owner selects on ``fileno`` and calls ``run_posted``."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._posted: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def post(self, action: Callable[[], object]) -> None:
        """Have the owner call it, soon."""
        self._posted.put(action)
        self.ring()

    def ring(self) -> None:
        """Have the owner look up from its selector."""
        with suppress(BlockingIOError, OSError):  # full: it is being woken already; closed: nobody waits
            self._writer.send(b"!")

    def fileno(self) -> int:
        return self._reader.fileno()

    def run_posted(self) -> None:
        with suppress(BlockingIOError):
            self._reader.recv(4096)
        while True:
            try:
                action = self._posted.get_nowait()
            except Empty:
                return
            action()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
