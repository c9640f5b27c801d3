"""Signals as something a selector can wait for, so that no code of ours runs inside a signal handler."""

from __future__ import annotations

import faulthandler
import signal
import socket
from types import FrameType

SHUTDOWN = (signal.SIGTERM, signal.SIGINT)


class SignalInbox:
    """Collects SIGTERM and SIGINT; SIGQUIT prints the stack of every thread. Main thread only.

    ``fileno`` makes it a member of any selector; ``read`` answers what arrived since the last call.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._previous_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, wake_only) for number in SHUTDOWN}
        faulthandler.register(signal.SIGQUIT)

    def fileno(self) -> int:
        return self._reader.fileno()

    def read(self) -> list[signal.Signals]:
        try:
            return [signal.Signals(number) for number in self._reader.recv(64)]
        except BlockingIOError:
            return []

    def close(self) -> None:
        """Puts back what was there before."""
        faulthandler.unregister(signal.SIGQUIT)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_fd)
        self._reader.close()
        self._writer.close()


def wake_only(signum: int, frame: FrameType | None) -> None:
    """Does nothing: the byte that C wrote to the wake-up socket is the message.

    Preferred to SIG_IGN where a signal is not for this process: an ignored signal stays ignored in every program that
    a handler starts, a handled one does not.
    """
