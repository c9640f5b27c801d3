"""job_prioritize.lua: waiting jobs get another priority and keep their place by arrival."""

from __future__ import annotations

import pytest

from jobs.store.codec.bodies import decode_body
from jobs.store.codec.records import Record
from tests.support.partition import NEWER, NOW, Partition, State, body, due, held, place, record


@pytest.mark.parametrize(("old", "new"), [(0, 7), (7, -100), (-100, 100), (-40, -50), (100, 0)])
@pytest.mark.parametrize("type", ["t", "t" * 31, "t" * 32, "t" * 200], ids=["1", "31", "32", "200"])
def test_only_the_priority_of_the_body_changes(partition: Partition, type: str, old: int, new: int) -> None:
    facts = {"type": type, "tags": ("x",), "meta": {"a": "b"}, "timeout": None}
    partition.put({"bodies": {"a": body(b'[1, {"b": []}]', priority=old, **facts)}, "ready": {"a": place(4, old)}})

    assert partition.run("job_prioritize", "a", priority=new) == ["ok"]
    assert partition.state() == {
        "bodies": {"a": body(b'[1, {"b": []}]', priority=new, **facts)},
        "ready": {"a": place(4, new)},
    }


def test_a_body_of_the_longest_type_stays_readable(partition: Partition) -> None:
    long = "t" * 300
    partition.put({"bodies": {"a": body(type=long)}, "ready": {"a": place(1)}})

    partition.run("job_prioritize", "a", priority=-77)

    stored = partition.store.client.hget(partition.keys.bodies, "a")
    assert decode_body(stored)[2:4] == (long, -77)


@pytest.mark.parametrize(
    ("line", "stored"),
    [
        pytest.param("scheduled", None, id="scheduled, never touched"),
        pytest.param("scheduled", record("scheduled", fence=2), id="scheduled by a snooze"),
        pytest.param("retry_wait", record("retry_wait", attempt=1, errors=1), id="waiting for a retry"),
    ],
)
def test_one_that_waits_for_a_time_takes_the_priority_with_it(
    partition: Partition, line: str, stored: Record | None
) -> None:
    partition.put({"bodies": {"a": body()}, line: {"a": due(NOW + 60_000)}})
    if stored:
        partition.put({"states": {"a": stored}})

    assert partition.run("job_prioritize", "a", priority=9) == ["ok"]
    assert partition.state() == {
        "bodies": {"a": body(priority=9)},
        line: {"a": due(NOW + 60_000, priority=9)},
        **({"states": {"a": stored}} if stored else {}),
    }


@pytest.mark.parametrize("line", ["ready", "throttled", "parked_of:t"])
def test_one_that_is_ready_keeps_its_arrival_wherever_it_stands(partition: Partition, line: str) -> None:
    stored = record("ready", ready_at=NOW - 9, place=place(6))
    partition.put({"bodies": {"a": body()}, "states": {"a": stored}, line: {"a": place(6)}})

    assert partition.run("job_prioritize", "a", priority=-3) == ["ok"]
    assert partition.state()[line] == {"a": place(6, -3)}
    assert partition.state()["states"] == {"a": stored._replace(place=place(6, -3))}


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("leased", {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}),
        ("dead", {"bodies": {"a": body()}, "states": {"a": record("dead")}, "dead": {"a": NOW}}),
        ("blocked", {"bodies": {"a": body()}, "states": {"a": record("blocked")}, "blocked": {"a": NOW}}),
        ("unreadable", {"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "scheduled": {"a": due(NOW + 1)}}),
        ("unreadable", {"bodies": {"a": b"\x00" * 30}, "ready": {"a": 1}}),
        ("unreadable", {"bodies": {"a": NEWER}, "ready": {"a": place(1)}}),
        ("JOB_NOT_FOUND", {}),
        ("JOB_NOT_FOUND", {"bodies": {"a": b""}, "voided": {"a": NOW}}),
    ],
)
def test_any_other_stays_as_it_is(partition: Partition, answer: str, before: State) -> None:
    partition.put(before)
    before = partition.state()

    assert partition.run("job_prioritize", "a", priority=1) == [answer]
    assert partition.state() == before
