"""pool_cap.lua: a partition's share of what may run at once in its pool."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, place


def test_a_share_is_kept_with_its_version_and_who_waits_is_woken(partition: Partition) -> None:
    partition.put({"leased": {"a": NOW}, "ready": {"b": place(1), "c": place(2)}})

    assert partition.run("pool_cap", share=5, version=2) == [1, 2, 5]
    assert partition.state()["control"] == {"max_running": "5", "cap_version": "2"}
    assert partition.state()["wake"] == ["1"]


def test_an_older_version_changes_nothing(partition: Partition) -> None:
    partition.run("pool_cap", share=5, version=4)

    assert partition.run("pool_cap", share=9, version=3) == [0, 0, 5]
    assert partition.run("pool_cap", share="", version=4) == [0, 0, 5]


def test_a_share_can_be_taken_away(partition: Partition) -> None:
    partition.run("pool_cap", share=5, version=4)

    assert partition.run("pool_cap", share="", version=5) == [0, 0, ""]
    assert partition.state()["control"] == {"cap_version": "5"}
