"""Waiting for a fact, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Fact = TypeVar("Fact")


def eventually(condition: Callable[[], Fact], within: float = 5.0, every: float = 0.01) -> Fact:
    """Asks until the answer is truthy and returns it; fails with the last answer when time is up.

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
