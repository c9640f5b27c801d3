"""job_discard.lua: succeeded | dead | cancelled | skipped → (none)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, State, body, held, place, record


def call(partition: Partition, *ids: str, ended_by: int | str = "") -> Any:
    return partition.run("job_discard", *ids, ended_by=ended_by)


ENDED = ("succeeded", "dead", "cancelled", "skipped")


@pytest.mark.parametrize("state", ENDED)
def test_all_that_is_stored_of_an_ended_job_goes(partition: Partition, state: str) -> None:
    kept = {"bodies": {"b": body()}, "states": {"b": record(state)}, state: {"b": NOW}}
    partition.put(kept)
    partition.put(
        {
            "bodies": {"a": body()},
            "states": {"a": record(state)},
            "attempts": {"a": [(1, "w", 1, 2, "failed", "{}")]},
            "results": {"a": "1"},
            "progress": {"a": b"\x93"},
            "expiring": {"a": NOW + 1},
            state: {"a": NOW},
        }
    )

    assert call(partition, "a") == ["ok"]
    assert partition.state() == kept


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("JOB_NOT_FOUND", {}),
        ("JOB_NOT_FOUND", {"bodies": {"a": b""}, "voided": {"a": NOW}}),
        ("ready", {"bodies": {"a": body()}, "ready": {"a": place(1)}}),
        ("leased", {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}),
        ("retry_wait", {"bodies": {"a": body()}, "states": {"a": record("retry_wait")}, "retry_wait": {"a": NOW}}),
    ],
)
def test_a_job_that_lives_or_is_not_there_stays_as_it_is(partition: Partition, answer: str, before: State) -> None:
    partition.put(before)
    before = partition.state()

    assert call(partition, "a") == [answer]
    assert partition.state() == before


@pytest.mark.parametrize("line", ENDED)
def test_an_ended_job_whose_record_cannot_be_read_can_be_removed(partition: Partition, line: str) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": b"\xc1"}, line: {"a": NOW}})

    assert call(partition, "a") == ["ok"]
    assert partition.state() == {}


@pytest.mark.parametrize("line", ["ready", "leased", "scheduled", "retry_wait"])
def test_a_live_job_whose_record_cannot_be_read_is_not_removed(partition: Partition, line: str) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": b"\xc1"}, line: {"a": NOW}})
    before = partition.state()

    assert call(partition, "a") == ["unreadable"]
    assert partition.state() == before


def test_one_that_ended_after_the_given_moment_stays(partition: Partition) -> None:
    partition.put(
        {"bodies": {"a": body()}, "states": {"a": held(state="dead", finished_at=NOW - 1)}, "dead": {"a": NOW - 1}}
    )

    assert call(partition, "a", ended_by=NOW - 2) == ["later"]
    assert call(partition, "a", ended_by=NOW - 1) == ["ok"]
    assert partition.state() == {}
