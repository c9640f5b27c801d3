"""How long things took: buckets, quantiles, and the error that is promised."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.histogram import ERROR, LAST_BUCKET, Histogram, bucket_of, middle_ms, upper_ms

durations = st.integers(0, 30 * 86_400_000)


@given(durations)
def test_a_duration_lies_in_its_bucket_and_near_its_middle(milliseconds: int) -> None:
    bucket = bucket_of(milliseconds)

    assert milliseconds < upper_ms(bucket) * (1 + 1e-9)
    assert bucket == 0 or milliseconds >= upper_ms(bucket - 1) * (1 - 1e-9)
    assert abs(middle_ms(bucket) - milliseconds) <= ERROR * milliseconds * (1 + 1e-9)


def test_buckets_begin_at_a_millisecond_and_end_after_weeks() -> None:
    assert [bucket_of(value) for value in (0, 0.99, 1, 2, 4, 1024)] == [0, 0, 1, 9, 17, 81]
    assert bucket_of(1e300) == LAST_BUCKET
    assert upper_ms(LAST_BUCKET - 1) > 45 * 86_400_000


@given(st.lists(durations, min_size=1, max_size=200), st.sampled_from((0.5, 0.95, 0.99, 1.0)))
def test_a_quantile_is_as_near_as_promised(values: list[int], part: float) -> None:
    exact = sorted(values)[ceil(part * len(values)) - 1] / 1000
    told = Histogram.of(values).quantile_seconds(part)

    assert told is not None
    assert abs(told - exact) <= exact * ERROR * (1 + 1e-9)


@given(st.lists(st.lists(durations, max_size=20), max_size=5))
def test_merged_histograms_are_the_histogram_of_all(parts: list[list[int]]) -> None:
    whole = Histogram()
    for part in parts:
        whole.merge(Histogram.of(part))
    together = Histogram.of(value for part in parts for value in part)

    assert (whole.buckets, whole.total_ms, whole.count) == (
        together.buckets,
        together.total_ms,
        sum(map(len, parts)),
    )


def test_nothing_measured_has_no_quantiles() -> None:
    assert Histogram().as_dict() == {"count": 0, "mean": None, "p50": None, "p95": None, "p99": None}


def test_the_mean_is_exact() -> None:
    """AC-133: five jobs of 12 ms have taken 12 ms on the average, and no less."""
    assert Histogram.of([12] * 5).mean_seconds == pytest.approx(0.012)
