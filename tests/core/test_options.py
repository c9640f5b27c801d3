"""The options of an enqueue: what is taken, and what is said of the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.duration import LONGEST_SECONDS
from jobs.core.options import EnqueueOptions, check_options
from jobs.core.retry import Fixed
from jobs.core.wording import shown
from jobs.exceptions import OptionInvalid

HOSTILE = ("\ud800", "a\x00b", "line\nbreak", "\x1b[31m", "x" * 201, "é" * 101, "", 5, b"x", ["x"], {}, ...)


def refusal(**options: Any) -> OptionInvalid:
    with pytest.raises(OptionInvalid) as caught:
        check_options(options)
    return caught.value


def test_every_option_of_the_contract_is_taken() -> None:
    checked = check_options(
        {
            "pool": "critical",
            "priority": -100,
            "max_retries": 0,
            "timeout": timedelta(minutes=1),
            "backoff": Fixed(5),
            "tags": ["b", "a", "b"],
            "meta": {"customer": "42", "empty": ""},
            "delay": 1.5,
            "id": "order {'7'} ü",
            "unique_key": "welcome:42",
            "unique_until": 300,
            "on_duplicate": "replace",
            "concurrency_key": "c",
            "rate_key": "r",
            "durability": "memory",
            "on_commit": "other",
            "allow_unknown": True,
        }
    )

    assert checked["timeout"] == 60.0
    assert checked["backoff"] == ("fixed", 5, 0.0)
    assert checked["tags"] == ("b", "a")
    assert checked["delay"] == 1500
    assert checked.keys() | {"run_at"} == EnqueueOptions.__annotations__.keys()


def test_an_unknown_option_is_answered_with_the_nearest_one() -> None:
    error = refusal(prioritty=3)

    assert "'prioritty'" in str(error)
    assert error.fix == "Did you mean 'priority'?"


def test_none_leaves_an_option_as_it_was() -> None:
    assert check_options(dict.fromkeys(EnqueueOptions.__annotations__)) == {"timeout": None, "unique_key": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("pool", value) for value in ("", ".x", "a b", "a/b", "{a}", "x" * 65, "ü", "a\n", 5, "\ud800")],
        *[("priority", value) for value in (-101, 101, 1.0, "1", True, 10**5000)],
        *[("max_retries", value) for value in (-1, 0.5, "3", False, 10**5000)],
        *[("timeout", value) for value in (0, -1, float("nan"), float("inf"), "30", True, timedelta(days=-1))],
        *[("backoff", value) for value in (5, "exponential", ("fixed", 1), Fixed)],
        *[("tags", value) for value in ("nightly", {"a": 1}, 5, ["x"] * 0 + [str(n) for n in range(21)])],
        *[("meta", value) for value in ("a=b", ["a"], {"a": 1}, {1: "a"}, {str(n): "" for n in range(21)})],
        *[("delay", value) for value in (-1, "5m", float("nan"), timedelta(seconds=-1), LONGEST_SECONDS * 2, 10**5000)],
        *[("run_at", value) for value in ("2026-01-01", 1.5, datetime(2026, 1, 1))],
        *[("unique_until", value) for value in ("done", 0, -1, True)],
        *[("on_duplicate", value) for value in ("ignore", True, 1)],
        *[("durability", value) for value in ("safe", 1)],
        *[("on_commit", value) for value in (1, [])],
        *[("allow_unknown", value) for value in ("yes", 1)],
        *[(name, value) for name in ("id", "unique_key", "concurrency_key", "rate_key") for value in HOSTILE],
        *[("tags", [value]) for value in HOSTILE],
        *[("meta", {"a": value}) for value in HOSTILE if value != ""],
        *[("meta", {value: "a"}) for value in HOSTILE if isinstance(value, str | int)],
    ],
    ids=shown,
)
def test_a_wrong_value_is_refused_with_the_option_and_a_fix_in_words_that_can_be_shown(name: str, value: Any) -> None:
    error = refusal(**{name: value})

    assert name in str(error)
    assert error.fix
    (str(error) + error.fix).encode()
    assert len(str(error)) < 300


def test_delay_and_run_at_exclude_each_other() -> None:
    assert "delay and run_at" in str(refusal(delay=1, run_at=datetime.now(UTC)))


def test_a_naive_run_at_is_refused_with_the_way_to_make_it_aware() -> None:
    assert "make_aware" in refusal(run_at=datetime(2026, 1, 1)).fix


@given(st.datetimes(timezones=st.timezones()))
def test_run_at_is_never_early(run_at: datetime) -> None:
    """AC-65: the stored due time is the time asked for, up to the next whole millisecond."""
    stored = check_options({"run_at": run_at})["run_at"]
    exact = (run_at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)

    assert stored >= 1
    assert stored >= exact - 1e-3
    assert stored - max(1, exact) < 1.001


@pytest.mark.parametrize("hours", [-14, 14])
@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
def test_the_ends_of_the_calendar_can_be_given(moment: datetime, hours: int) -> None:
    assert check_options({"run_at": moment.replace(tzinfo=timezone(timedelta(hours=hours)))})["run_at"] >= 1


@given(st.floats(0, LONGEST_SECONDS, allow_nan=False))
def test_a_delay_is_never_shorter_than_asked_for(delay: float) -> None:
    stored = check_options({"delay": delay})["delay"]

    assert delay * 1000 - 1e-3 <= stored < delay * 1000 + 1


def test_short_delays_are_accepted_and_none_is_now() -> None:
    """AC-74: any delay from zero on."""
    assert [check_options({"delay": delay})["delay"] for delay in (0, 0.001, 0.0004)] == [0, 1, 1]
