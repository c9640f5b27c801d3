"""pool_pause.lua: no new starts in this partition."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, place


def test_a_pause_is_written_beside_what_else_is_known(partition: Partition) -> None:
    before = {"ready": {"a": place(1)}}
    partition.put({**before, "control": {"recovered_at": NOW}})

    partition.run("pool_pause", paused='{"by":"me"}', until_ms=NOW + 5)

    control = {"recovered_at": str(NOW), "paused": '{"by":"me"}', "paused_until": str(NOW + 5)}
    assert partition.state() == {**before, "control": control}


def test_a_later_pause_replaces_an_earlier_one(partition: Partition) -> None:
    partition.run("pool_pause", paused="first", until_ms=NOW + 5)
    partition.run("pool_pause", paused="second", until_ms="")

    assert partition.state() == {"control": {"paused": "second", "paused_until": ""}}
