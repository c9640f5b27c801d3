"""Ctrl-C during work in steps: the step under way is finished, so that what is told to be done is what was done."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

WORDS = b"\nStopping after this step. Ctrl-C once more stops at once, and what this step did is not told.\n"


class Interrupt:
    """Whether somebody wants the work to stop."""

    def __init__(self) -> None:
        self.requested = False

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        """The first Ctrl-C is a wish, the second an order."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        # Not through Python's streams: the signal may have come in the middle of a write to one of them.
        with suppress(OSError, ValueError, AttributeError):
            if os.isatty(sys.__stderr__.fileno()):  # type: ignore[union-attr]  # None without a console: suppressed
                os.write(sys.__stderr__.fileno(), WORDS)  # type: ignore[union-attr]


@contextmanager
def finishing_steps() -> Iterator[Interrupt]:
    """Within it, Ctrl-C is a request that the loop looks at between two steps. Elsewhere than in the main thread, where
    no signal arrives, it changes nothing."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, interrupt.ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
