"""job_promote.lua: scheduled | retry_wait → ready, when their time has come."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, due, place, record


def test_due_jobs_get_a_place_in_line_and_the_next_time_is_told(partition: Partition) -> None:
    waiting = record("retry_wait", attempt=1, errors=1, run_at=NOW - 5, place=place(1))
    partition.put(
        {
            "scheduled": {"a": due(NOW), "b": due(NOW + 1), "c": due(NOW - 1, priority=3)},
            "retry_wait": {"d": due(NOW - 5), "e": due(NOW + 7)},
            "states": {"d": waiting, "e": waiting},
            "sequence": 10,
        }
    )

    assert partition.run("job_promote", limit=100) == [NOW, 3, NOW + 1]
    assert partition.state() == {
        "clock": NOW,
        "sequence": 13,
        "scheduled": {"b": due(NOW + 1)},
        "retry_wait": {"e": due(NOW + 7)},
        "ready": {"c": place(11, priority=3), "a": place(12), "d": place(13)},
        "states": {"d": waiting._replace(state="ready", ready_at=NOW - 5, place=place(13)), "e": waiting},
        "wake": ["1"],
    }


def test_not_a_millisecond_too_early(partition: Partition) -> None:
    for priority in (-100, 0, 100):
        partition.put({"scheduled": {f"p{priority}": due(NOW + 1, priority)}})

    assert partition.run("job_promote", limit=100) == [NOW, 0, NOW + 1]
    assert partition.run("job_promote", limit=100, given_now=NOW + 1) == [NOW + 1, 3, ""]


def test_among_jobs_due_in_one_millisecond_the_higher_priority_is_first(partition: Partition) -> None:
    partition.put({"scheduled": {"low": due(NOW, -100), "high": due(NOW, 100), "middle": due(NOW)}})

    partition.run("job_promote", limit=2)

    assert list(partition.state()["ready"]) == ["high", "middle"]
    assert list(partition.state()["scheduled"]) == ["low"]


def test_nothing_due_changes_nothing(partition: Partition) -> None:
    assert partition.run("job_promote", limit=100) == [NOW, 0, ""]
    assert partition.state() == {"clock": NOW}


def test_a_job_whose_record_cannot_be_read_is_promoted_too(partition: Partition) -> None:
    partition.put({"retry_wait": {"a": due(NOW)}, "states": {"a": b"\xc1"}})

    partition.run("job_promote", limit=100)

    assert partition.state()["ready"] == {"a": place(1)}
    assert partition.state()["states"] == {"a": b"\xc1"}
