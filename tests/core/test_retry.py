"""Backoffs and the decision after a failure."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.retry import (
    DEFAULT_BACKOFF,
    Backoff,
    Cancelled,
    Dead,
    Exponential,
    Fixed,
    Linear,
    Retry,
    Snooze,
    decide,
    decode_backoff,
    encode_backoff,
)
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost, OptionInvalid

lengths = st.floats(0, 1e9, allow_nan=False)
fractions = st.floats(0, 1, allow_nan=False)
draws = st.floats(0, 1, exclude_max=True, allow_nan=False)
backoffs = st.one_of(
    st.builds(Exponential, lengths, lengths, fractions),
    st.builds(Linear, lengths, lengths, fractions),
    st.builds(Fixed, lengths, fractions),
)


def decision(error: BaseException, errors: int = 0, max_retries: int = 3, **given: object) -> object:
    return decide(error, errors=errors, max_retries=max_retries, backoff=Fixed(1), **given)  # type: ignore[arg-type]


class TestBackoff:
    def test_exponential_doubles_until_the_retries_are_spent(self) -> None:
        """AC-39: base 100 ms, cap 1 s, 3 retries: 100, 200, 400 ms, and then stop."""
        backoff = Exponential(0.1, cap=1, jitter=0)

        decisions = [decide(ValueError(), errors=n, max_retries=3, backoff=backoff) for n in range(4)]

        assert [d.delay_ms for d in decisions[:3]] == [100, 200, 400]
        assert decisions[3].outcome == "dead"

    def test_exponential_stops_growing_at_the_cap(self) -> None:
        assert Exponential(1, cap=60, jitter=0).delay(50) == 60

    def test_linear_grows_by_one_step_a_failure(self) -> None:
        assert [Linear(5, cap=12, jitter=0).delay(n) for n in (1, 2, 3)] == [5, 10, 12]

    def test_fixed_waits_the_same_each_time(self) -> None:
        assert [Fixed(7).delay(n) for n in (1, 2, 100)] == [7, 7, 7]

    @given(backoffs, st.integers(1, 10**12), draws)
    def test_no_delay_leaves_the_range_from_zero_to_the_cap(self, backoff: Backoff, failures: int, draw: float) -> None:
        """AC-47: whatever the jitter and the draw."""
        cap = backoff.seconds if isinstance(backoff, Fixed) else backoff.cap

        assert 0 <= backoff.delay(failures, lambda: draw) <= cap

    @given(fractions, draws)
    def test_jitter_stays_within_its_fraction_of_the_step(self, jitter: float, draw: float) -> None:
        delay = Exponential(1, cap=60, jitter=jitter).delay(1, lambda: draw)

        assert 1 - jitter <= delay <= 1 + jitter + 1e-9

    def test_failures_that_reached_the_cap_stay_spread(self) -> None:
        backoff = Exponential(1, cap=60, jitter=0.5)

        assert backoff.delay(20, lambda: 0.0) == 30
        assert backoff.delay(20, lambda: 0.5) == 45

    @given(backoffs)
    def test_a_backoff_comes_back_as_it_was_stored(self, backoff: Backoff) -> None:
        """AC-46: the policy is kept with the job, so any process goes on with it."""
        assert decode_backoff(encode_backoff(backoff)) == backoff

    @pytest.mark.parametrize("stored", [(), ("fibonacci", 1), ("fixed", "soon"), ("fixed", -1.0), ("fixed", 1, 2)])
    def test_a_backoff_of_another_version_waits_as_the_default(self, stored: tuple[object, ...]) -> None:
        assert decode_backoff(stored) == DEFAULT_BACKOFF

    @pytest.mark.parametrize(
        ("kind", "options"),
        [
            (Exponential, {"base": -1}),
            (Exponential, {"cap": float("nan")}),
            (Exponential, {"jitter": 1.5}),
            (Exponential, {"jitter": True}),
            (Linear, {"step": "1"}),
            (Fixed, {"seconds": float("inf")}),
            (Fixed, {"seconds": 10**400}),
        ],
    )
    def test_impossible_numbers_are_refused_with_the_name_of_the_option(
        self, kind: type[Backoff], options: dict[str, object]
    ) -> None:
        with pytest.raises(OptionInvalid, match=next(iter(options))):
            kind(**options)  # type: ignore[arg-type]


class TestDecide:
    @pytest.mark.parametrize("errors", [0, 1, 2])
    def test_a_failure_is_retried_while_there_are_retries(self, errors: int) -> None:
        """AC-41: three retries make four attempts."""
        assert decision(ValueError(), errors, max_retries=3).outcome == "retry"
        assert decision(ValueError(), 3, max_retries=3).outcome == "dead"

    def test_without_retries_the_first_failure_is_the_last(self) -> None:
        assert decision(ValueError(), 0, max_retries=0).outcome == "dead"

    def test_a_time_out_is_a_failure_like_any_other(self) -> None:
        assert decision(JobTimeout()).outcome == "retry"
        assert decision(JobTimeout(), dead_on=(JobTimeout,)).outcome == "dead"

    def test_retry_decides_its_own_delay(self) -> None:
        assert decision(Retry(after=90)).delay == 90
        assert decision(Retry(timedelta(minutes=2))).delay == 120
        assert decision(Retry()).delay == 1

    def test_retry_is_charged_as_a_failure(self) -> None:
        assert decision(Retry(after=1), errors=3, max_retries=3).outcome == "dead"

    def test_dead_ends_a_job_with_retries_left(self) -> None:
        assert decision(Dead("no such customer")).outcome == "dead"

    def test_snooze_waits_and_never_runs_out(self) -> None:
        snoozed = decision(Snooze(timedelta(hours=1)), errors=99)

        assert (snoozed.outcome, snoozed.delay) == ("snooze", 3600)

    @pytest.mark.parametrize("error", [Cancelled(), JobCancelled()])
    def test_cancelled_is_never_retried(self, error: BaseException) -> None:
        assert decision(error).outcome == "cancelled"

    def test_errors_in_dead_on_are_not_retried(self) -> None:
        assert decision(KeyError(), dead_on=(LookupError,)).outcome == "dead"

    def test_errors_outside_retry_on_are_not_retried(self) -> None:
        assert decision(ValueError(), retry_on=(OSError,)).outcome == "dead"
        assert decision(ConnectionError(), retry_on=(OSError,)).outcome == "retry"

    def test_dead_on_wins_over_retry_on(self) -> None:
        assert decision(KeyError(), retry_on=(Exception,), dead_on=(KeyError,)).outcome == "dead"

    def test_what_the_handler_asks_for_wins_over_dead_on(self) -> None:
        assert decision(Retry(), dead_on=(Exception,)).outcome == "retry"
        assert decision(Snooze(1), dead_on=(Exception,)).outcome == "snooze"

    @pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), BaseException(), LeaseLost()])
    def test_errors_that_are_no_exceptions_are_retried(self, error: BaseException) -> None:
        """AC-35: a panic is a failed attempt."""
        assert decision(error).outcome == "retry"

    @given(st.floats(0, 1e6, allow_nan=False))
    def test_milliseconds_are_never_fewer_than_the_seconds_asked_for(self, seconds: float) -> None:
        assert decision(Retry(seconds)).delay_ms >= seconds * 1000 - 1e-5

    @pytest.mark.parametrize("after", [-1, float("nan"), "soon", True, 10**20])
    def test_impossible_delays_are_refused_where_they_are_raised(self, after: object) -> None:
        with pytest.raises(OptionInvalid, match="after"):
            Retry(after=after)  # type: ignore[arg-type]
        with pytest.raises(OptionInvalid, match="Snooze"):
            Snooze(after)  # type: ignore[arg-type]
