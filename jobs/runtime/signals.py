"""Signals as something a selector can wait for, so that no code of ours runs inside a signal handler."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
from types import FrameType
from typing import Any

SHUTDOWN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What asks a process to end; the last one comes when its terminal is closed."""


class SignalInbox:
    """Collects what asks this process to end; SIGQUIT prints the stack of every thread. Main thread only.

    ``fileno`` makes it a member of any selector; ``read`` answers what arrived since the last call.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._previous_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._previous = wake_at_shutdown()
        faulthandler.register(signal.SIGQUIT)

    def fileno(self) -> int:
        return self._reader.fileno()

    def read(self) -> list[signal.Signals]:
        """What arrived. Signals that others have handlers for are written here too: they ask for no end."""
        try:
            return [signal.Signals(number) for number in self._reader.recv(64) if number in SHUTDOWN]
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


def wake_at_shutdown() -> dict[signal.Signals, Any]:
    """Has signals that ask for the end do nothing but wake; what did something before. One that ``nohup`` has ignored
    stays so: its process is to outlive the terminal."""
    is_bound = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return {number: signal.signal(number, wake_only) for number in SHUTDOWN if is_bound or number != signal.SIGHUP}


def end_forks_at_sigterm() -> None:
    """Processes that somebody's code forks off this one shall end when they are told to, and wake nobody here by it.
    What a terminal tells all of its processes still leaves them alone, as it does the handlers that they work for."""
    os.register_at_fork(before=_hold_sigterm, after_in_parent=_let_sigterm_through, after_in_child=_end_at_sigterm)


def _hold_sigterm() -> None:
    """One that comes at once must find the new process ready for it, or it would be lost."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def _let_sigterm_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _end_at_sigterm() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_sigterm_through()


def wake_only(signum: int, frame: FrameType | None) -> None:
    """Does nothing: the byte that C wrote to the wake-up socket is the message.

    Preferred to SIG_IGN where a signal is not for this process: an ignored signal stays ignored in every program that
    a handler starts, a handled one does not.
    """
