"""job_unpark.lua: ready (parked) → ready."""

from __future__ import annotations

from tests.support.partition import Partition, place


def test_parked_jobs_of_the_type_stand_in_line_again_at_their_old_places(partition: Partition) -> None:
    partition.put(
        {
            "parked": {"t": 2, "other": 1},
            "parked_of:t": {"a": place(1), "c": place(3, priority=5)},
            "parked_of:other": {"x": place(4)},
            "ready": {"b": place(2)},
        }
    )

    assert partition.run("job_unpark", type="t", limit=1_000, wakes="1") == 2
    assert partition.state() == {
        "parked": {"other": 1},
        "parked_of:other": {"x": place(4)},
        "ready": {"c": place(3, priority=5), "a": place(1), "b": place(2)},
        "wake": ["1"],
    }


def test_no_more_than_the_limit_are_moved_and_those_first_in_line_first(partition: Partition) -> None:
    partition.put({"parked": {"t": 3}, "parked_of:t": {"a": place(1), "b": place(2), "c": place(3)}})

    assert partition.run("job_unpark", type="t", limit=2, wakes="") == 2
    state = partition.state()
    assert list(state["ready"]) == ["a", "b"]
    assert "wake" not in state, "it was not asked to wake anybody"
    assert (state["parked"], state["parked_of:t"]) == ({"t": 1}, {"c": place(3)})


def test_a_count_that_went_wrong_is_put_right(partition: Partition) -> None:
    partition.put({"parked": {"t": 5}})

    assert partition.run("job_unpark", type="t", limit=2, wakes="1") == 0
    assert partition.state() == {}
