"""job_run_now.lua: scheduled | retry_wait → ready, before its time."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import JobNotFound, WrongState
from jobs.store.codec.records import Record
from tests.support.partition import NOW, Partition, State, body, due, held, place, record


@pytest.mark.parametrize(
    ("line", "stored"),
    [
        pytest.param("scheduled", None, id="scheduled, never touched"),
        pytest.param("scheduled", record("scheduled", fence=2, run_at=NOW + 9), id="scheduled by a snooze"),
        pytest.param("retry_wait", record("retry_wait", attempt=1, errors=1), id="waiting for a retry"),
    ],
)
def test_a_job_that_waits_for_a_time_gets_a_place_in_line_by_its_priority(
    partition: Partition, line: str, stored: Record | None
) -> None:
    partition.put({"bodies": {"a": body()}, line: {"a": due(NOW + 60_000, priority=7)}, "sequence": 4})
    if stored:
        partition.put({"states": {"a": stored}})

    assert partition.run("job_run_now", id="a") == "ready"
    assert partition.state() == {
        "clock": NOW,
        "sequence": 5,
        "bodies": {"a": body()},
        "states": {"a": (stored or record(""))._replace(state="ready", ready_at=NOW, place=place(5, priority=7))},
        "ready": {"a": place(5, priority=7)},
        "wake": ["1"],
    }


@pytest.mark.parametrize(
    ("state", "before"),
    [
        ("ready", {"bodies": {"a": body()}, "ready": {"a": place(1)}}),
        ("leased", {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}),
        ("dead", {"bodies": {"a": body()}, "states": {"a": record("dead")}, "dead": {"a": NOW}}),
        ("unreadable", {"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "scheduled": {"a": due(NOW + 1)}}),
    ],
)
def test_a_job_that_does_not_wait_for_a_time_stays_as_it_is(partition: Partition, state: str, before: State) -> None:
    partition.put(before)
    before = partition.state()

    with pytest.raises(WrongState) as refused:
        partition.run("job_run_now", id="a")

    assert refused.value.state == state
    assert partition.state() == before


@pytest.mark.parametrize("before", [{}, {"bodies": {"a": b""}, "voided": {"a": NOW}}], ids=["unknown", "voided"])
def test_a_job_that_is_not_there_is_not_found(partition: Partition, before: dict[str, Any]) -> None:
    partition.put(before)

    with pytest.raises(JobNotFound):
        partition.run("job_run_now", id="a")

    assert partition.state() == before
