"""job_cancel.lua: scheduled | ready | retry_wait | blocked → cancelled; leased → leased, asked to stop."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import JobNotFound, WrongState
from tests.support.partition import NOW, Partition, State, body, due, held, place, record


def call(partition: Partition, job_id: str = "a", only_waiting: str = "") -> Any:
    return partition.run("job_cancel", id=job_id, only_waiting=only_waiting)


@pytest.mark.parametrize(
    ("line", "score", "stored"),
    [
        pytest.param("ready", place(1), None, id="ready, never touched"),
        pytest.param("ready", place(1), record("ready", attempt=1, fence=1), id="ready after a crash"),
        pytest.param("scheduled", due(NOW + 9), None, id="scheduled, never touched"),
        pytest.param("scheduled", due(NOW + 9), record("scheduled", fence=1), id="scheduled by a snooze"),
        pytest.param("retry_wait", due(NOW + 9), record("retry_wait", attempt=1, errors=1), id="waiting for a retry"),
        pytest.param("blocked", NOW, record("blocked"), id="blocked"),
    ],
)
def test_a_waiting_job_is_cancelled_at_once(partition: Partition, line: str, score: float, stored: Any) -> None:
    partition.put({"bodies": {"a": body()}, line: {"a": score, "other": score}})
    if stored is not None:
        partition.put({"states": {"a": stored}})

    assert call(partition) == "cancelled"
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": (stored or record(""))._replace(state="cancelled", finished_at=NOW)},
        line: {"other": score},
        "cancelled": {"a": NOW},
        "counters": {"cancelled:t": 1},
    }


def test_a_job_that_stands_aside_with_its_run_leaves_too(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body()},
            "states": {"a": record("ready", fence=1)},
            "parked": {"\nrun": 1, "other": 1},
            "parked_of:\nrun": {"a": place(1)},
            "parked_of:other": {"b": place(2)},
        }
    )

    assert call(partition) == "cancelled"
    assert partition.state()["parked"] == {"other": 1}
    assert "parked_of:\nrun" not in partition.state()


@pytest.mark.parametrize(
    ("others", "left"), [({}, {}), ({"b": place(2)}, {"parked": {"t": 1}, "parked_of:t": {"b": place(2)}})]
)
def test_a_parked_job_leaves_its_line_and_the_count(partition: Partition, others: State, left: State) -> None:
    line = {"a": place(1), **others}
    partition.put(
        {
            "bodies": {"a": body()},
            "states": {"a": record("ready", fence=1)},
            "parked": {"t": len(line)},
            "parked_of:t": line,
        }
    )

    assert call(partition) == "cancelled"
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": record("cancelled", fence=1, finished_at=NOW)},
        "cancelled": {"a": NOW},
        "counters": {"cancelled:t": 1},
        **left,
    }


def test_a_leased_job_is_asked_to_stop(partition: Partition) -> None:
    before = {"bodies": {"a": body()}, "leased": {"a": NOW + 5_000}}
    partition.put({**before, "states": {"a": held()}})

    assert call(partition) == "leased"
    assert partition.state() == {**before, "clock": NOW, "states": {"a": held(cancel=1)}}


def test_asking_twice_changes_nothing(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW + 5_000}})
    call(partition)
    before = partition.state()

    assert call(partition) == "leased"
    assert partition.state() == before


def test_a_leased_job_is_refused_where_only_a_waiting_one_may_be_stopped(partition: Partition) -> None:
    before = {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW + 5_000}}
    partition.put(before)

    with pytest.raises(WrongState) as refused:
        call(partition, only_waiting="1")

    assert refused.value.state == "leased"
    assert partition.state() == before


@pytest.mark.parametrize("state", ["succeeded", "dead", "cancelled", "skipped"])
def test_a_job_that_ended_stays_as_it_is(partition: Partition, state: str) -> None:
    before = {"bodies": {"a": body()}, "states": {"a": record(state, finished_at=NOW - 1)}, state: {"a": NOW - 1}}
    partition.put(before)

    with pytest.raises(WrongState) as refused:
        call(partition)

    assert refused.value.state == state
    assert partition.state() == before


@pytest.mark.parametrize("before", [{}, {"bodies": {"a": b""}, "voided": {"a": NOW}}], ids=["unknown", "voided"])
def test_a_job_that_is_not_there_is_not_found(partition: Partition, before: State) -> None:
    partition.put(before)

    with pytest.raises(JobNotFound):
        call(partition)

    assert partition.state() == before


def test_a_waiting_job_whose_record_cannot_be_read_can_be_stopped(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "ready": {"a": place(1)}})

    assert call(partition) == "cancelled"
    assert partition.state()["cancelled"] == {"a": NOW}
    assert "ready" not in partition.state()
