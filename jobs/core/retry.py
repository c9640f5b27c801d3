"""When a failed attempt is tried again: backoffs, what a handler may raise to decide itself, and the decision.

All of it is pure: the caller brings the numbers and the randomness, and applies the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import random as system_random
from typing import Any, Literal

import msgspec

from jobs.core.duration import milliseconds, seconds
from jobs.core.wording import shown
from jobs.exceptions import JobCancelled, OptionInvalid

Random = Callable[[], float]
"""Draws from [0, 1)."""


# --- Backoffs ----------------------------------------------------------------------------------------------------


class Exponential(msgspec.Struct, frozen=True, array_like=True, tag="exponential"):
    """Waits ``base``, ``2·base``, ``4·base`` … seconds, never more than ``cap``, spread by ``jitter``.

    ``jitter`` is a fraction: 0.2 draws evenly from 80 % to 120 % of the step. The draw is cut at ``cap`` before it is
    made, so that failures that reached the cap stay spread and do not all return in the same instant.
    """

    base: float = 1.0
    cap: float = 60.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        _check_backoff(self, base=self.base, cap=self.cap, jitter=self.jitter)

    def delay(self, failures: int, random: Random = system_random) -> float:
        """Seconds to wait after ``failures`` failed attempts (1 after the first), within [0, cap]."""
        # 2.0**1024 is an OverflowError, while 2.0**1023 times anything is at worst infinity, which the cap cuts.
        return _spread(self.base * 2.0 ** min(failures - 1, 1023), self.cap, self.jitter, random)


class Linear(msgspec.Struct, frozen=True, array_like=True, tag="linear"):
    """Waits ``step``, ``2·step``, ``3·step`` … seconds, never more than ``cap``, spread by ``jitter``."""

    step: float = 1.0
    cap: float = 60.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        _check_backoff(self, step=self.step, cap=self.cap, jitter=self.jitter)

    def delay(self, failures: int, random: Random = system_random) -> float:
        """Seconds to wait after ``failures`` failed attempts (1 after the first), within [0, cap]."""
        return _spread(self.step * failures, self.cap, self.jitter, random)


class Fixed(msgspec.Struct, frozen=True, array_like=True, tag="fixed"):
    """Waits the same number of ``seconds`` each time. With a ``jitter`` it waits up to that fraction less."""

    seconds: float = 1.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _check_backoff(self, seconds=self.seconds, jitter=self.jitter)

    def delay(self, failures: int, random: Random = system_random) -> float:
        """Seconds to wait after ``failures`` failed attempts, within [0, seconds]."""
        return _spread(self.seconds, self.seconds, self.jitter, random)


Backoff = Exponential | Linear | Fixed


def encode_backoff(backoff: Backoff) -> tuple[Any, ...]:
    """The form kept with a job: ``("exponential", 1.0, 60.0, 0.2)``."""
    return tuple(msgspec.to_builtins(backoff))


def decode_backoff(encoded: Sequence[Any]) -> Backoff:
    """The backoff kept with a job. One that this version does not know waits as the default does.

    It may have been written by a newer producer. The job has just failed: this is no moment to fail for good over
    the length of a pause.
    """
    try:
        backoff: Backoff = msgspec.convert(list(encoded), Backoff)
    except (msgspec.ValidationError, TypeError, ValueError):
        return DEFAULT_BACKOFF
    return backoff


def _check_backoff(backoff: Backoff, *, jitter: object, **lengths: object) -> None:
    kind = type(backoff).__name__
    for name, length in lengths.items():
        seconds(length, name=f"{kind} {name}")
    if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 <= jitter <= 1:
        raise OptionInvalid(
            f"{kind} jitter: expected a fraction from 0 to 1, got {shown(jitter)}", fix="Write 0.2 for ± 20 %."
        )


def _spread(step: float, cap: float, jitter: float, random: Random) -> float:
    step = min(step, cap)
    shortest, longest = step * (1 - jitter), min(step * (1 + jitter), cap)
    # min() again: a + (b - a) may exceed b by the last bit.
    return min(shortest + (longest - shortest) * random(), cap)


DEFAULT_BACKOFF = Exponential()


# --- What a handler may raise --------------------------------------------------------------------------------------


class Retry(Exception):
    """Try again. ``after``: seconds or a timedelta; without it the job's backoff decides. Charged as a failure."""

    def __init__(self, after: float | timedelta | None = None, reason: str = "the handler asked for a retry") -> None:
        super().__init__(reason)
        self.after = None if after is None else seconds(after, name="Retry after")


class Dead(Exception):
    """Give up for good: the job goes to the dead-letter list now, whatever retries it has left."""

    def __init__(self, reason: str = "the handler gave up") -> None:
        super().__init__(reason)


class Snooze(Exception):
    """Not now: back to ``scheduled`` for ``delay`` (seconds or a timedelta). No attempt is charged."""

    def __init__(self, delay: float | timedelta) -> None:
        self.seconds = seconds(delay, name="Snooze")
        super().__init__(f"snoozed for {self.seconds:g} s")


class Cancelled(JobCancelled):
    """Stop: the job ends as ``cancelled`` and is not tried again."""


# --- The decision ----------------------------------------------------------------------------------------------------


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a job whose attempt raised. ``delay`` in seconds, for ``retry`` and ``snooze``."""

    outcome: Literal["retry", "dead", "snooze", "cancelled"]
    delay: float = 0.0
    reason: str = ""

    @property
    def delay_ms(self) -> int:
        """The delay in whole milliseconds, rounded up: never early."""
        return milliseconds(self.delay)


def decide(
    error: BaseException,
    *,
    errors: int,
    max_retries: int,
    backoff: Backoff | Sequence[Any],
    retry_on: tuple[type[BaseException], ...] = (Exception,),
    dead_on: tuple[type[BaseException], ...] = (),
    random: Random = system_random,
) -> Decision:
    """What follows from ``error``, raised by an attempt of a job that had failed ``errors`` times before.

    What the handler raised on purpose comes first, then ``dead_on``, then ``retry_on``. A job with ``max_retries=3``
    is tried four times. Errors outside ``Exception`` (``SystemExit`` of a library, a bare ``BaseException``) are
    retried too: they end the attempt, not the worker, and say nothing about the next try.
    """
    if isinstance(error, JobCancelled):
        return Decision(outcome="cancelled")
    if isinstance(error, Snooze):
        return Decision(outcome="snooze", delay=error.seconds)
    if isinstance(error, Dead):
        return Decision(outcome="dead", reason="the handler gave up")

    asked = isinstance(error, Retry)
    if not asked and isinstance(error, dead_on):
        return Decision(outcome="dead", reason=f"{type(error).__name__} is in dead_on")
    if not asked and isinstance(error, Exception) and not isinstance(error, retry_on):
        return Decision(outcome="dead", reason=f"{type(error).__name__} is not in retry_on")

    failures = errors + 1
    if failures > max_retries:
        return Decision(outcome="dead", reason=f"all {max_retries} retries are spent")
    if isinstance(error, Retry) and error.after is not None:
        return Decision(outcome="retry", delay=error.after)
    if not isinstance(backoff, Backoff):
        backoff = decode_backoff(backoff)
    return Decision(outcome="retry", delay=backoff.delay(failures, random))
