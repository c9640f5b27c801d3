"""job_recover.lua: leased → ready | dead | cancelled, when the lease ran out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, body, error, held, place, record

LOST = error("WorkerLost", "The lease ran out: the worker died or was cut off.")


def call(partition: Partition, **changes: Any) -> Any:
    arguments = {"attempts_kept": 25, "limit": 100, "lease_ms": 10_000, "elapsed": ""} | changes
    return partition.run("job_recover", **arguments)


def test_only_leases_that_ran_out_are_taken_back(partition: Partition) -> None:
    partition.put({"states": {"a": held(), "b": held()}, "leased": {"a": NOW, "b": NOW + 1}})

    assert call(partition) == [NOW, 0, 1, 0, NOW + 1, ""]
    assert list(partition.state()["leased"]) == ["b"]


def test_a_job_that_never_started_goes_back_as_it_was_and_the_loss_is_noted(partition: Partition) -> None:
    partition.put({"states": {"a": held(attempt=2, errors=1)}, "leased": {"a": NOW}, "ready": {"b": place(2)}})

    assert call(partition) == [NOW, 0, 1, 0, "", ""]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="ready", token="", attempt=1, errors=1, lost=1)},
        "ready": {"a": place(1), "b": place(2)},
        "control": {"recovered_at": str(NOW)},
        "wake": ["1"],
    }


def test_a_job_that_had_started_is_charged_a_crash(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held(started_at=NOW - 900)}, "leased": {"a": NOW}})

    assert call(partition) == [NOW, 1, 0, 0, "", ""]
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": held(state="ready", token="", crashes=1)},
        "ready": {"a": place(1)},
        "attempts": {"a": [(1, "w", NOW - 900, NOW, "crashed", LOST)]},
        "counters": {"crashed:t": 1},
        "control": {"recovered_at": str(NOW)},
        "wake": ["1"],
    }


def test_the_tenth_lease_that_is_lost_unstarted_is_charged(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held(lost=9)}, "leased": {"a": NOW}})

    assert call(partition) == [NOW, 1, 0, 0, "", ""]
    assert partition.state()["states"] == {"a": held(state="ready", token="", crashes=1)}


def test_a_spent_crash_budget_buries_the_job(partition: Partition) -> None:
    partition.put(
        {"bodies": {"a": body(max_crashes=1)}, "states": {"a": held(started_at=NOW - 1)}, "leased": {"a": NOW}}
    )

    assert call(partition) == [NOW, 1, 0, 1, "", "", "a"]
    assert partition.state()["dead"] == {"a": NOW}
    assert "ready" not in partition.state()


@pytest.mark.parametrize("started_at", [0, NOW - 1])
def test_a_job_that_was_asked_to_stop_ends_cancelled(partition: Partition, started_at: int) -> None:
    partition.put(
        {"bodies": {"a": body()}, "states": {"a": held(cancel=1, started_at=started_at)}, "leased": {"a": NOW}}
    )

    call(partition)

    assert partition.state()["cancelled"] == {"a": NOW}
    assert partition.state()["counters"]["cancelled:t"] == 1


@pytest.mark.parametrize("state", ["ready", "succeeded", "dead", "retry_wait", "cancelled"])
def test_the_state_is_compared_when_it_is_written(partition: Partition, state: str) -> None:
    stored = record(state, attempt=1, fence=1, token="token")
    partition.put({"states": {"a": stored}, "leased": {"a": NOW}, state: {"a": NOW}})

    assert call(partition)[1:4] == [0, 0, 0]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": stored},
        state: {"a": NOW},
        "control": {"recovered_at": str(NOW)},
    }


def test_a_job_whose_record_cannot_be_read_goes_back_in_line(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "leased": {"a": NOW}})

    call(partition)

    assert list(partition.state()["ready"]) == ["a"]
    assert partition.state()["states"]["a"].state == "ready"


def test_no_more_than_the_limit_are_taken_back_at_once(partition: Partition) -> None:
    partition.put(
        {"states": {job_id: held() for job_id in "abc"}, "leased": {"a": NOW - 3, "b": NOW - 2, "c": NOW - 1}}
    )

    assert call(partition, limit=2) == [NOW, 0, 2, 0, NOW - 1, ""]
    assert list(partition.state()["leased"]) == ["c"]


def test_a_jump_of_the_clock_gives_everybody_another_lease(partition: Partition) -> None:
    before = {"states": {"a": held()}, "leased": {"a": NOW - 1}}
    partition.put({**before, "control": {"recovered_at": NOW - 60_000}})

    assert call(partition, elapsed=49_999) == [NOW, 0, 0, 0, NOW - 1, "1"]
    assert partition.state() == {
        **before,
        "clock": NOW,
        "control": {"recovered_at": str(NOW), "hold_until": str(NOW + 10_000), "clock_alarm": str(NOW)},
    }


@pytest.mark.parametrize("elapsed", [50_000, 60_000, ""])
def test_time_that_the_caller_saw_pass_is_no_jump(partition: Partition, elapsed: int | str) -> None:
    partition.put({"states": {"a": held()}, "leased": {"a": NOW - 1}, "control": {"recovered_at": NOW - 60_000}})

    assert call(partition, elapsed=elapsed)[2] == 1


@pytest.mark.parametrize(("hold_until", "released"), [(NOW + 1, 0), (NOW, 1)])
def test_recovery_goes_on_when_the_hold_is_over(partition: Partition, hold_until: int, released: int) -> None:
    partition.put(
        {
            "states": {"a": held()},
            "leased": {"a": NOW - 1},
            "control": {"recovered_at": NOW - 100, "hold_until": hold_until},
        }
    )

    assert call(partition, elapsed=100)[2] == released


def test_a_clock_that_was_set_back_stands_still(partition: Partition) -> None:
    partition.put({"clock": NOW + 5_000, "states": {"a": held()}, "leased": {"a": NOW + 5_001}})

    assert call(partition) == [NOW + 5_000, 0, 0, 0, NOW + 5_001, ""]
    assert partition.state()["clock"] == NOW + 5_000
