"""job_prune.lua: succeeded | cancelled | skipped → (none), when the retention is over."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine.leases import _PruneKeys
from tests.support.partition import NOW, Partition, State, body, record

RETENTION = 60_000
OLD = NOW - RETENTION


def call(partition: Partition, line: str = "succeeded", limit: int = 100, skip: int = 0) -> Any:
    keys = _PruneKeys(partition.keys, line)
    now, kept, *gone = partition.store.run(
        "job_prune", keys, given_now=NOW, retention=RETENTION, limit=limit, skip=skip
    )
    assert now == NOW
    return kept, [job_id.decode() for job_id in gone]


def ended(line: str, **ends: int) -> State:
    return {
        "bodies": {job_id: body() for job_id in ends},
        "states": {job_id: record(line) for job_id in ends},
        line: dict(ends),
    }


@pytest.mark.parametrize("line", ["succeeded", "cancelled", "skipped"])
def test_all_that_is_stored_of_old_jobs_goes_and_newer_ones_stay(partition: Partition, line: str) -> None:
    kept = ended(line, new=OLD + 1)
    partition.put(kept)
    partition.put(ended(line, old=OLD))
    partition.put({"attempts": {"old": []}, "results": {"old": "1"}, "progress": {"old": "p"}})

    assert call(partition, line) == (0, ["old"])
    assert partition.state() == {**kept, "clock": NOW}


def test_a_retention_of_its_own_wins_over_the_default(partition: Partition) -> None:
    partition.put(ended("succeeded", longer=OLD - 5, shorter=NOW - 1, both_over=OLD - 4))
    partition.put({"expiring": {"longer": NOW + 1, "shorter": NOW, "both_over": NOW - 1}})

    kept, gone = call(partition)

    assert kept == 1
    assert sorted(gone) == ["both_over", "shorter"]
    assert partition.state()["succeeded"] == {"longer": OLD - 5}
    assert partition.state()["expiring"] == {"longer": NOW + 1}


def test_no_more_than_the_limit_go_and_the_oldest_go_first(partition: Partition) -> None:
    partition.put(ended("succeeded", a=OLD - 3, b=OLD - 2, c=OLD - 1))

    assert call(partition, limit=2) == (0, ["a", "b"])
    assert partition.state()["succeeded"] == {"c": OLD - 1}


def test_those_that_are_known_to_be_kept_are_passed_over(partition: Partition) -> None:
    partition.put(ended("succeeded", kept=OLD - 3, gone=OLD - 2))
    partition.put({"expiring": {"kept": NOW + 1}})

    assert call(partition, limit=1, skip=0) == (1, [])
    assert call(partition, limit=1, skip=1) == (0, ["gone"])


def test_a_job_of_another_line_is_not_touched(partition: Partition) -> None:
    before = {**ended("cancelled", a=NOW - 1), "expiring": {"a": NOW - 1}}
    partition.put(before)

    assert call(partition, "succeeded") == (0, [])
    assert partition.state() == {**before, "clock": NOW}
