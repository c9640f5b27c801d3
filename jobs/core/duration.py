"""Lengths of time as people give them to us: seconds or a ``timedelta``."""

from __future__ import annotations

import math
from datetime import timedelta

from jobs.core.wording import shown
from jobs.exceptions import OptionInvalid

LONGEST_SECONDS = 100 * 365 * 86_400.0
"""A hundred years. Longer is a mistake of unit (milliseconds for seconds), and would leave the calendar."""


def seconds(value: object, *, name: str) -> float:
    """``value`` in seconds: a finite number or a timedelta, from 0 to a hundred years.

    ``name`` is the option it was given for: the error names it.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OptionInvalid(
            f"{name}: expected seconds or a timedelta, got {shown(value)}",
            fix=f"Write for example {name}=90 or {name}=timedelta(minutes=5).",
        )
    # Compared before the conversion: an int of a thousand digits has no float. NaN fails both comparisons.
    if not 0 <= value <= LONGEST_SECONDS:
        raise OptionInvalid(
            f"{name}: {shown(value)} is not between 0 and {LONGEST_SECONDS:.0f} seconds (a hundred years)",
            fix=f"Give {name} in seconds, 0 or more.",
        )
    return float(value)


def milliseconds(length_seconds: float) -> int:
    """Whole milliseconds, rounded up: what is promised for a moment never happens before it."""
    # A hair is taken off first, so that 0.1 s (100.00000000000001 ms in binary) is 100 ms and not 101.
    return math.ceil(length_seconds * 1000 - 1e-6)
