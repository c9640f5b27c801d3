"""Raises an exception in a thread that runs somebody's code, and only while it runs that code.

Python can leave an exception for another thread, which meets it at its next step: maybe after it has left the code that
was meant, and is about to tell the store how the job ended. So the right to interrupt is a thing that one of two takes:
the thread itself when the code has ended, and then nobody interrupts it any more; or whoever interrupts, and then the
thread does not go on before it has met the exception.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import get_ident
from typing import Any

from jobs.runtime.loop import sleep

_leave_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
_leave_exception.argtypes = (ctypes.c_ulong, ctypes.py_object)
_leave_exception.restype = ctypes.c_int

HANDOVER_SECONDS = 0.0002
"""Who interrupts has taken the right and is a few steps from using it."""


def saying(error: BaseException) -> type[BaseException]:
    """A class whose instances say what ``error`` says: another thread can be left a class only, to make one of."""
    kind = type(error)
    return type(kind.__name__, (kind,), {"__doc__": str(error), "__module__": kind.__module__})


class Interruptible:
    """Runs one function, once. ``interrupt`` from one other thread, at any time."""

    __slots__ = ("_is_left", "_right")

    def __init__(self) -> None:
        self._right: list[int] = []  # while the function runs: its thread. To pop is to take, for one of two only
        self._is_left = False

    def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """In the calling thread. Raises what the function does, or what it was interrupted with."""
        self._right.append(get_ident())
        try:
            return function(**arguments)
        finally:
            try:
                self._right.pop()
            except IndexError:
                self._meet_exception()

    @property
    def was_interrupted(self) -> bool:
        """Whether the function met an exception from outside, wherever it was."""
        return self._is_left

    def interrupt(self, error: type[BaseException]) -> bool:
        """Raises ``error`` in the function, unless it was interrupted before. False: it has not begun, or is over."""
        try:
            thread = self._right.pop()
        except IndexError:
            return self._is_left
        _leave_exception(thread, error)
        self._is_left = True
        return True

    def _meet_exception(self) -> None:
        """The function may have met it and gone on, or not met it yet. Afterwards there is none left to meet.

        There is no asking whether one is left, and taking it away would leave the interpreter looking for it for ever
        after. But a second one replaces the first, and will be met right here.
        """
        try:
            while not self._is_left:
                sleep(HANDOVER_SECONDS)
            _leave_exception(get_ident(), _Met)
            while True:
                pass
        except BaseException:  # noqa: S110  # nothing here raises anything else
            pass


class _Met(BaseException):
    """Raised and caught in ``_meet_exception``."""
