"""How long things took, as counts in buckets that grow by the same factor: small, mergeable, with a known error.

Bucket 0 holds what took less than a millisecond; bucket ``b`` what took from ``2**((b - 1) / 8)`` ms to less than
``2**(b / 8)`` ms: eight buckets to each doubling. A quantile is told as the bucket's middle, which is at most 4.4 %
(``ERROR``) from the true value, or 1 ms for what is shorter than that. Buckets of workers, partitions and hours are
added up without loss. The scripts choose the bucket by the same rule: lua/include/bucket.lua.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, floor, log2

PER_DOUBLING = 8
LAST_BUCKET = 256  # begins at 2**31.875 ms, after 45 days

_GROWTH = 2 ** (1 / PER_DOUBLING)
ERROR = (_GROWTH - 1) / (_GROWTH + 1)
"""The largest relative error of a quantile: 0.0433."""


def bucket_of(milliseconds: float) -> int:
    """The bucket of a duration."""
    if milliseconds < 1:
        return 0
    return min(LAST_BUCKET, 1 + floor(log2(milliseconds) * PER_DOUBLING + 1e-9))


def upper_ms(bucket: int) -> float:
    """Where the bucket ends, ms; what took as long is in the next one."""
    return float(2 ** (bucket / PER_DOUBLING))


def middle_ms(bucket: int) -> float:
    """The value that stands for all of the bucket."""
    if bucket == 0:
        return 0.0
    low, high = upper_ms(bucket - 1), upper_ms(bucket)
    return 2 * low * high / (low + high)


class Histogram:
    """Counts by bucket, and the exact sum of what was measured."""

    __slots__ = ("buckets", "total_ms")

    def __init__(self, buckets: Mapping[int, int] | None = None, total_ms: int = 0) -> None:
        self.buckets: dict[int, int] = dict(buckets or {})
        self.total_ms = total_ms

    @classmethod
    def of(cls, durations_ms: Iterable[float]) -> Histogram:
        """Of single durations."""
        histogram = cls()
        for duration in durations_ms:
            histogram.add(bucket_of(duration), 1)
            histogram.total_ms += int(duration)
        return histogram

    def add(self, bucket: int, number: int) -> None:
        self.buckets[bucket] = self.buckets.get(bucket, 0) + number

    def merge(self, other: Histogram) -> None:
        """Takes in what the other one measured."""
        for bucket, number in other.buckets.items():
            self.add(bucket, number)
        self.total_ms += other.total_ms

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    @property
    def mean_seconds(self) -> float | None:
        """Exact to the millisecond; None where nothing was measured."""
        return self.total_ms / self.count / 1000 if self.count else None

    def quantile_seconds(self, part: float) -> float | None:
        """The duration that ``part`` (0 to 1) of all stayed within, to within ``ERROR``; None where there is none."""
        wanted, seen = max(1, ceil(part * self.count)), 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return middle_ms(bucket) / 1000
        return None

    def count_up_to(self, bucket: int) -> int:
        """How many ended in this bucket or an earlier one."""
        return sum(number for other, number in self.buckets.items() if other <= bucket)

    def as_dict(self) -> dict[str, float | int | None]:
        """What people read: seconds, None where nothing was measured."""
        return {
            "count": self.count,
            "mean": _rounded(self.mean_seconds),
            "p50": _rounded(self.quantile_seconds(0.5)),
            "p95": _rounded(self.quantile_seconds(0.95)),
            "p99": _rounded(self.quantile_seconds(0.99)),
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
