"""job_crash.lua: leased → ready | dead | cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, body, held, place, record

STARTED = NOW - 400
FAILURE = '{"type":"WorkerCrashed"}'


def call(partition: Partition, job_id: str = "a", token: str = "token") -> Any:
    return partition.run("job_crash", job_id, token, STARTED, attempts_kept=25, failure=FAILURE)


def test_a_crash_is_charged_to_its_own_budget_and_the_job_comes_back_at_its_old_place(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(max_crashes=2, max_retries=0)},
            "states": {"a": held(errors=7, lost=3)},
            "leased": {"a": NOW + 5_000},
        }
    )

    assert call(partition) == ["ready"]
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body(max_crashes=2, max_retries=0)},
        "states": {"a": held(state="ready", token="", errors=7, crashes=1)},
        "ready": {"a": place(1)},
        "attempts": {"a": [(1, "w", STARTED, NOW, "crashed", FAILURE)]},
        "counters": {"crashed:t": 1},
        "wake": ["1"],
    }


def test_the_last_crash_of_the_budget_buries_the_job(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(max_crashes=2)},
            "states": {"a": held(crashes=1, attempt=2)},
            "leased": {"a": NOW + 5_000},
        }
    )

    assert call(partition) == ["dead"]
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body(max_crashes=2)},
        "states": {"a": held(state="dead", crashes=2, attempt=2, started_at=STARTED, finished_at=NOW)},
        "dead": {"a": NOW},
        "attempts": {"a": [(2, "w", STARTED, NOW, "crashed", FAILURE)]},
        "counters": {"crashed:t": 1, "dead:t": 1},
    }


def test_a_job_that_was_asked_to_stop_ends_cancelled(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(max_crashes=1)},
            "states": {"a": held(cancel=1)},
            "leased": {"a": NOW + 5_000},
        }
    )

    assert call(partition) == ["cancelled"]
    state = partition.state()
    assert state["cancelled"] == {"a": NOW}
    assert state["states"]["a"] == held(state="cancelled", crashes=1, cancel=1, finished_at=NOW)
    assert state["counters"] == {"crashed:t": 1, "cancelled:t": 1}


@pytest.mark.parametrize("stored", [None, b"\x00" * 30], ids=["no body", "a body that cannot be read"])
def test_a_job_whose_budget_cannot_be_read_is_buried(partition: Partition, stored: bytes | None) -> None:
    partition.put({"states": {"a": held()}, "leased": {"a": NOW + 5_000}})
    if stored:
        partition.put({"bodies": {"a": stored}})

    assert call(partition) == ["dead"]
    assert partition.state()["dead"] == {"a": NOW}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="charged before"),
        pytest.param(record("succeeded", token="token"), id="ended"),
    ],
)
def test_a_stale_crash_charges_nobody(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert call(partition) == ["lost"]
    assert partition.state() == {**before, "clock": NOW}
