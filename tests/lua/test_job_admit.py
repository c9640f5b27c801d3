"""job_admit.lua: ready and set aside → ready, in line."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, place, record


def test_a_job_keeps_its_place_where_the_line_has_not_moved_past_it(partition: Partition) -> None:
    partition.put({"throttled": {"a": place(7)}, "ready": {"b": place(3)}, "sequence": 9})

    assert partition.run("job_admit", "a") == ["ready"]
    assert partition.state()["ready"] == {"b": place(3), "a": place(7)}
    assert partition.state()["wake"] == ["1"]


def test_else_it_stands_right_behind_the_first(partition: Partition) -> None:
    partition.put({"throttled": {"a": place(1)}, "ready": {"b": place(20), "c": place(30)}, "sequence": 30})
    partition.put({"states": {"a": record("ready", fence=1, place=place(1))}})

    partition.run("job_admit", "a")

    assert partition.state()["ready"] == {"b": place(20), "a": place(21), "c": place(30)}
    assert partition.state()["states"]["a"].place == place(21)


def test_those_that_come_back_one_after_the_other_stay_in_that_order(partition: Partition) -> None:
    partition.put(
        {"throttled": {"x": place(3), "y": place(1), "z": place(2)}, "ready": {"b": place(20)}, "sequence": 20}
    )

    partition.run("job_admit", "y", "x")
    partition.run("job_admit", "z")

    assert partition.state()["ready"] == {"b": place(20), "y": place(21), "x": place(22), "z": place(23)}
    assert partition.state()["sequence"] == 23  # whoever comes from now on stands behind them


def test_priorities_have_lines_of_their_own(partition: Partition) -> None:
    partition.put({"throttled": {"a": place(1, 5)}, "ready": {"b": place(20)}, "sequence": 20})

    partition.run("job_admit", "a")

    assert partition.state()["ready"] == {"a": place(1, 5), "b": place(20)}


def test_who_is_not_set_aside_stays_where_it_is(partition: Partition) -> None:
    before = {"ready": {"a": place(1)}, "states": {"c": record("cancelled", finished_at=NOW)}, "cancelled": {"c": NOW}}
    partition.put(before)

    assert partition.run("job_admit", "a", "c", "unknown") == ["gone", "gone", "gone"]
    assert partition.state() == before


def test_whoever_called_learns_that_nothing_starts_here_now(partition: Partition) -> None:
    partition.put({"throttled": {"a": place(1)}, "control": {"paused": "1"}})

    assert partition.run("job_admit", "a") == ["paused"]
    assert partition.state()["ready"] == {"a": place(1)}
