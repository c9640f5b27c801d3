"""job_release.lua: leased → ready | cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, body, held, place, record


def call(partition: Partition, *items: str, charged: str = "") -> Any:
    return partition.run("job_release", *items, charged=charged, attempts_kept=25)


def test_a_job_comes_back_at_its_old_place_before_those_that_came_later(partition: Partition) -> None:
    partition.put(
        {
            "states": {"a": held(attempt=2, lost=1, place=place(1))},
            "leased": {"a": NOW + 5_000},
            "ready": {"b": place(2)},
        }
    )

    assert call(partition, "a", "token") == ["ready"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="ready", token="", attempt=1, lost=1, place=place(1))},
        "ready": {"a": place(1), "b": place(2)},
        "wake": ["1"],
    }


def test_an_attempt_that_had_begun_counts_when_it_is_charged(partition: Partition) -> None:
    partition.put({"states": {"a": held(attempt=2, started_at=NOW - 9)}, "leased": {"a": NOW + 5_000}})

    assert call(partition, "a", "token", charged="1") == ["ready"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="ready", token="", attempt=2)},
        "ready": {"a": place(1)},
        "attempts": {"a": [(2, "w", NOW - 9, NOW, "released", False)]},
        "counters": {"released:": 1},
        "wake": ["1"],
    }


def test_a_job_that_was_asked_to_stop_ends_instead(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held(cancel=1)}, "leased": {"a": NOW + 5_000}})

    assert call(partition, "a", "token") == ["cancelled"]
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": held(state="cancelled", attempt=0, cancel=1, finished_at=NOW)},
        "cancelled": {"a": NOW},
        "counters": {"cancelled:t": 1},
    }


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="handed back before"),
        pytest.param(record("succeeded", token="token"), id="ended"),
    ],
)
@pytest.mark.parametrize("charged", ["", "1"])
def test_a_stale_release_changes_nothing(partition: Partition, stored: object, charged: str) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert call(partition, "a", "token", charged=charged) == ["lost"]
    assert partition.state() == {**before, "clock": NOW}
