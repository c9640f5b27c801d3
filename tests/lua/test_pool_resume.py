"""pool_resume.lua: the end of a pause."""

from __future__ import annotations

from tests.support.partition import NOW, Partition


def test_the_pause_goes_and_one_fetcher_is_woken(partition: Partition) -> None:
    partition.put({"control": {"paused": "{}", "paused_until": NOW, "recovered_at": NOW}})

    partition.run("pool_resume")
    partition.run("pool_resume")

    assert partition.state() == {"control": {"recovered_at": str(NOW)}, "wake": ["1"]}
