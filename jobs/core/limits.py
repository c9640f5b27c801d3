"""What may run at once, and how often: the limits that a job type declares."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobs.core.wording import shown
from jobs.exceptions import OptionInvalid

PERIODS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Unit of a rate → its length, ms."""

_RATE = re.compile(r"([1-9][0-9]{0,8})/([smhd])")


class Rate(NamedTuple):
    """At most ``starts`` in any ``period_ms`` milliseconds."""

    starts: int
    period_ms: int

    def __str__(self) -> str:
        """As it was written: ``100/m``."""
        unit = next(unit for unit, length in PERIODS.items() if length == self.period_ms)
        return f"{self.starts}/{unit}"


class TypeLimits(NamedTuple):
    """The limits of one job type; at least one of them is set."""

    type: str
    concurrency: int | None  # running at once per concurrency key
    rate: Rate | None  # starts per rate key


def parse_rate(value: object) -> Rate:
    """``"100/m"`` → a rate. OptionInvalid."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise OptionInvalid(
            f"rate: {shown(value)} is not a rate",
            fix='Write rate="100/m": a whole number from 1, a slash, and one of s, m, h, d.',
        )
    return Rate(int(match[1]), PERIODS[match[2]])
