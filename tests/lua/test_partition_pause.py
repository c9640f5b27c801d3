"""partition_pause.lua: a partition is told what is paused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition


def tell(partition: Partition, version: int, until_ms: Any = "", types: str = "") -> Any:
    return partition.run("partition_pause", version=version, until_ms=until_ms, types=types)


def control(partition: Partition) -> dict[str, str]:
    return partition.state()["control"]


def test_what_is_paused_stands_where_leases_look(partition: Partition) -> None:
    partition.put({"control": {"recovered_at": NOW}})

    assert tell(partition, 3, NOW + 5, "types") == "1"
    assert {"pause_version": "3", "paused_until": str(NOW + 5), "paused_types": "types"}.items() <= control(
        partition
    ).items()
    assert control(partition)["recovered_at"] == str(NOW)
    assert "wake" not in partition.state(), "nobody is woken for nothing"


def test_the_end_of_a_pause_wakes_a_waiting_fetcher(partition: Partition) -> None:
    tell(partition, 1, NOW + 5)

    assert tell(partition, 2) == "1"
    assert control(partition)["paused_until"] == ""
    assert partition.state()["wake"] == ["1"]


@pytest.mark.parametrize("version", [0, 3, 4])
def test_whoever_is_late_with_an_older_version_changes_nothing(partition: Partition, version: int) -> None:
    tell(partition, 4, NOW + 5)
    before = partition.state()

    assert tell(partition, version) == ""
    assert partition.state() == before
