"""job_throttle.lua: leased → ready, set aside."""

from __future__ import annotations

import pytest

from tests.support.partition import NOW, Partition, body, held, place, record


def test_a_job_is_set_aside_at_its_old_place_and_not_charged(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(created_at=NOW - 70, run_at=NOW - 90)},
            "states": {"a": held(attempt=2, ready_at=0, place=place(3, 5))},
            "leased": {"a": NOW + 5_000},
        }
    )

    order, old_place = partition.run("job_throttle", "a", "token")

    assert int(order) == place(0, 5) + NOW - 70  # priority, then since when it is ready
    assert old_place == f"{place(3, 5):016}"
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body(created_at=NOW - 70, run_at=NOW - 90)},
        "states": {"a": held(state="ready", token="", attempt=1, ready_at=0, place=place(3, 5))},
        "throttled": {"a": place(3, 5)},
    }


def test_a_job_that_was_made_ready_later_waits_since_then(partition: Partition) -> None:
    partition.put({"states": {"a": held(ready_at=NOW - 9, place=place(1))}, "leased": {"a": NOW + 5_000}})

    assert partition.run("job_throttle", "a", "token")[0] == str(place(0) + NOW - 9)


def test_a_job_that_was_asked_to_stop_ends_instead(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held(cancel=1)}, "leased": {"a": NOW + 5_000}})

    assert partition.run("job_throttle", "a", "token") == ["", ""]
    assert partition.state()["cancelled"] == {"a": NOW}


@pytest.mark.parametrize(
    "stored", [held(token="another"), record("ready", token=""), record("succeeded", token="token")]
)
def test_a_lease_that_is_over_changes_nothing(partition: Partition, stored: object) -> None:
    partition.put({"states": {"a": stored}})

    assert partition.run("job_throttle", "a", "token") == ["", ""]
    assert partition.state() == {"states": {"a": stored}, "clock": NOW}
