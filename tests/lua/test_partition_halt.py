"""partition_halt.lua: a partition is told whether jobs of a run may start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition


def tell(partition: Partition, version: int, what: str, *, run: str = "r", not_after: int = NOW) -> Any:
    return partition.run("partition_halt", run=run, version=version, what=what, not_after=not_after)


def known(partition: Partition) -> tuple[Any, Any]:
    """What is known of runs, and how many are held back."""
    state = partition.state()
    return state.get("halted", {}), state.get("control", {}).get("halted", "0")


def test_runs_are_held_back_and_go_on_and_are_counted(partition: Partition) -> None:
    assert [tell(partition, 1, "halt"), tell(partition, 1, "halt", run="other")] == ["told", "told"]
    assert known(partition) == ({"r": 1, "other": 1}, "2")

    assert tell(partition, 2, "go on") == "told"
    assert known(partition) == ({"r": -2, "other": 1}, "1")

    assert tell(partition, 3, "halt") == "told"
    assert known(partition) == ({"r": 3, "other": 1}, "2")


@pytest.mark.parametrize(("version", "what"), [(1, "halt"), (2, "halt"), (1, "go on"), (1, "forget")])
def test_what_is_older_than_the_last_that_was_told_changes_nothing(
    partition: Partition, version: int, what: str
) -> None:
    tell(partition, 2, "go on")
    before = partition.state()

    assert tell(partition, version, what) == "known"
    assert partition.state() == before


def test_who_comes_late_changes_nothing(partition: Partition) -> None:
    assert tell(partition, 1, "halt", not_after=NOW - 1) == "late"
    assert known(partition) == ({}, "0")


@pytest.mark.parametrize("what", ["halt", "go on"])
def test_of_a_run_that_is_over_nothing_is_left(partition: Partition, what: str) -> None:
    tell(partition, 1, what)

    assert [tell(partition, 1, "forget"), tell(partition, 1, "forget")] == ["told", "told"]
    assert known(partition) == ({}, "0")
