"""Waiting for a fact, never for a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

Fact = TypeVar("Fact")


def eventually(condition: Callable[[], Fact], within: float = 30.0, every: float = 0.01) -> Fact:
    """Asks until the answer is truthy and returns it; fails with the last answer when time is up.

    Only a test that cannot pass waits for so long: the deadline is for the busiest machine.
    An assertion that fails inside the condition counts as "not yet".
    """
    deadline = time.monotonic() + within
    while True:
        failure: AssertionError | None = None
        answer = None
        try:
            answer = condition()
        except AssertionError as error:
            failure = error
        if answer:
            return answer
        if time.monotonic() > deadline:
            if failure is not None:
                raise failure
            raise AssertionError(f"not so after {within:g} s; the last answer was {answer!r}")
        time.sleep(every)


def soon(seconds: float) -> float:
    """The bound of what takes at most so many seconds where everybody has a processor. On a crowded machine all takes
    longer, by as much as it is crowded."""
    return seconds * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
