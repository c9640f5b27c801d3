"""partition_tidy.lua: what is bound by time or by a worker's life."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, body

HOUR = 3_600_000


def test_what_is_over_goes_and_the_rest_stays(partition: Partition) -> None:
    kept = {
        "voided": {"new": NOW - HOUR + 1},
        "bodies": {"new": b"", "job": body()},
        "grants": {"alive": ["t", "a"]},
    }
    partition.put(kept)
    partition.put(
        {
            "voided": {"old": NOW - HOUR, "job": NOW - HOUR},
            "bodies": {"old": b""},
            "grants": {"gone": ["t", "b"]},
        }
    )

    assert partition.run("partition_tidy", "gone", "never-there") == 2
    assert partition.state() == {**kept, "clock": NOW}


def test_a_tidy_partition_stays_as_it_is(partition: Partition) -> None:
    assert partition.run("partition_tidy") == 0
    assert partition.state() == {"clock": NOW}
