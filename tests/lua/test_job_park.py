"""job_park.lua: leased → ready (parked) | cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, held, place, record


def test_a_job_is_set_aside_with_its_place_and_nothing_is_charged_and_a_line_that_begins_is_told(
    partition: Partition,
) -> None:
    partition.put(
        {
            "states": {"a": held(attempt=2, errors=1), "b": held()},
            "leased": {"a": NOW + 5_000, "b": NOW + 5_000},
            "parked": {"t": 1},
            "parked_of:t": {"z": place(9)},
        }
    )

    assert partition.run("job_park", "a", "token", "t", "b", "token", "other") == ["ready", "ready", "other"]
    assert partition.state() == {
        "clock": NOW,
        "states": {
            "a": held(state="ready", token="", attempt=1, errors=1),
            "b": held(state="ready", token="", attempt=0),
        },
        "parked": {"t": 2, "other": 1},
        "parked_of:t": {"a": place(1), "z": place(9)},
        "parked_of:other": {"b": place(1)},
    }


def test_a_job_that_was_asked_to_stop_ends_instead(partition: Partition) -> None:
    partition.put({"states": {"a": held(cancel=1)}, "leased": {"a": NOW + 5_000}})

    assert partition.run("job_park", "a", "token", "t") == ["cancelled"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="cancelled", attempt=0, cancel=1, finished_at=NOW)},
        "cancelled": {"a": NOW},
        "counters": {"cancelled:t": 1},
    }


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="parked before"),
        pytest.param(record("succeeded", token="token"), id="ended"),
    ],
)
def test_a_stale_call_changes_nothing(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert partition.run("job_park", "a", "token", "t") == ["lost"]
    assert partition.state() == {**before, "clock": NOW}
