"""job_renew.lua: leased → leased, with a later deadline."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, held, record


def call(partition: Partition, *items: str) -> Any:
    return partition.run("job_renew", *items, lease_ms=10_000)


def test_leases_that_are_held_last_another_length_from_now(partition: Partition) -> None:
    states = {"a": held(), "b": held(token="other"), "c": held(started_at=NOW - 5)}
    partition.put({"states": states, "leased": {"a": NOW + 1, "b": NOW + 2, "c": NOW + 3}})

    reply = call(partition, "a", "token", "c", "token")

    assert reply == [NOW, "held", "held"]
    assert partition.state() == {
        "clock": NOW,
        "states": states,
        "leased": {"a": NOW + 10_000, "b": NOW + 2, "c": NOW + 10_000},
    }


def test_a_lease_that_ran_out_and_was_not_taken_back_yet_is_still_held(partition: Partition) -> None:
    partition.put({"states": {"a": held()}, "leased": {"a": NOW - 60_000}})

    assert call(partition, "a", "token") == [NOW, "held"]
    assert partition.state()["leased"] == {"a": NOW + 10_000}


def test_a_job_that_was_asked_to_stop_is_renewed_and_says_so(partition: Partition) -> None:
    partition.put({"states": {"a": held(cancel=1)}, "leased": {"a": NOW + 1}})

    assert call(partition, "a", "token") == [NOW, "cancel"]
    assert partition.state()["leased"] == {"a": NOW + 10_000}


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        pytest.param(None, "lost", id="no record"),
        pytest.param(b"\xc1", "lost", id="an unreadable record"),
        pytest.param(held(token="another"), "lost", id="held under another token"),
        pytest.param(record("ready"), "lost", id="taken back"),
        pytest.param(record("succeeded", token="token"), "ended", id="succeeded under this token"),
        pytest.param(record("retry_wait", token="token"), "ended", id="failed under this token"),
        pytest.param(record("ready", token="token"), "ended", id="failed under this token and due again"),
        pytest.param(record("dead", token="token"), "ended", id="buried under this token"),
        pytest.param(record("succeeded", token="another"), "lost", id="succeeded under another token"),
    ],
)
def test_what_is_not_held_is_told_apart_and_left_alone(partition: Partition, stored: object, answer: str) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert call(partition, "a", "token") == [NOW, answer]
    assert partition.state() == {**before, "clock": NOW}
