"""job_void.lua: an id whose claim is taken over never becomes a job."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, body, place


def test_an_id_without_a_job_is_voided(partition: Partition) -> None:
    assert partition.run("job_void", id="a") == "voided"
    assert partition.state() == {"clock": NOW, "bodies": {"a": b""}, "voided": {"a": NOW}}


def test_voiding_again_counts_from_then(partition: Partition) -> None:
    partition.run("job_void", id="a")

    assert partition.run("job_void", id="a", given_now=NOW + 5) == "voided"
    assert partition.state()["voided"] == {"a": NOW + 5}


def test_each_void_is_another_one_even_in_the_same_millisecond(partition: Partition) -> None:
    partition.run("job_void", id="a")
    partition.run("job_void", id="a")

    assert partition.state()["voided"] == {"a": NOW + 1}


def test_a_job_that_is_there_stays(partition: Partition) -> None:
    before = {"bodies": {"a": body()}, "ready": {"a": place(1)}}
    partition.put(before)

    assert partition.run("job_void", id="a") == "exists"
    assert partition.state() == before
