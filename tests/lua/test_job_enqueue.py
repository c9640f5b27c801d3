"""job_enqueue.lua: (none) → ready | scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.job import JobSpec
from jobs.exceptions import PoolFull
from jobs.store.codec.bodies import encode_header
from tests.support.partition import NOW, Partition, State, body, due, place

HEADER = encode_header(JobSpec(type="t"))
FRESH = body(created_at=NOW, run_at=NOW)


def call(partition: Partition, *ids: str, payload: bytes = b"{}", **changes: Any) -> Any:
    arguments = {
        "check_ids": "",
        "type": "t",
        "priority": 0,
        "delay": 0,
        "run_at": "",
        "void_seen": "",
        "max_pending": "",
        "header": HEADER,
    }
    arguments |= changes
    items = [value for job_id in ids for value in (job_id, payload)]
    return partition.run("job_enqueue", *items, **arguments)


def test_jobs_without_a_delay_stand_in_line_in_the_order_of_the_call(partition: Partition) -> None:
    reply = call(partition, "a", "b")

    assert reply == [NOW, NOW]
    assert partition.state() == {
        "clock": NOW,
        "sequence": 2,
        "bodies": {"a": FRESH, "b": FRESH},
        "ready": {"a": place(1), "b": place(2)},
        "wake": ["1"],
        "counters": {"enqueued:t": 2},
    }


def test_a_higher_priority_stands_before_what_came_earlier(partition: Partition) -> None:
    partition.put({"sequence": 7, "ready": {"early": place(7)}})

    call(partition, "late", priority=1)

    assert list(partition.state()["ready"]) == ["late", "early"]
    assert partition.state()["ready"]["late"] == place(8, priority=1)


def test_a_delayed_job_waits_for_its_millisecond_and_takes_no_place(partition: Partition) -> None:
    reply = call(partition, "a", delay=1_500, priority=-3)

    assert reply == [NOW, NOW + 1_500]
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body(created_at=NOW, run_at=NOW + 1_500)},
        "scheduled": {"a": due(NOW + 1_500, priority=-3)},
        "wake": ["1"],
        "counters": {"enqueued:t": 1},
    }


@pytest.mark.parametrize(("run_at", "line"), [(NOW - 1, "ready"), (NOW, "ready"), (NOW + 1, "scheduled")])
def test_a_time_that_is_past_or_now_means_now(partition: Partition, run_at: int, line: str) -> None:
    reply = call(partition, "a", run_at=run_at, delay=99)

    assert reply == [NOW, run_at]
    assert list(partition.state()[line]) == ["a"]
    assert partition.state()["bodies"] == {"a": body(created_at=NOW, run_at=run_at)}


def test_only_a_job_that_is_due_before_all_others_wakes_a_waiting_fetcher(partition: Partition) -> None:
    partition.put({"scheduled": {"first": due(NOW + 1_000)}})

    call(partition, "later", delay=1_001)
    assert "wake" not in partition.state()

    call(partition, "sooner", delay=999)
    assert partition.state()["wake"] == ["1"]


def test_one_wake_token_is_enough(partition: Partition) -> None:
    partition.put({"wake": ["1"]})

    call(partition, "a")

    assert partition.state()["wake"] == ["1"]


def test_an_id_that_is_taken_is_refused_and_the_others_are_created(partition: Partition) -> None:
    before: State = {"bodies": {"a": body(b"[1]")}, "ready": {"a": place(1)}, "sequence": 1}
    partition.put(before)

    reply = call(partition, "a", "b", check_ids="1")

    assert reply == [NOW, NOW, 1, "taken"]
    assert partition.state() == {
        "clock": NOW,
        "sequence": 2,
        "bodies": {**before["bodies"], "b": FRESH},
        "ready": {"a": place(1), "b": place(2)},
        "wake": ["1"],
        "counters": {"enqueued:t": 1, "duplicates:t": 1},
    }


def test_a_call_that_was_sent_before_finds_its_own_jobs_and_creates_only_the_missing(partition: Partition) -> None:
    call(partition, "a")
    before = partition.state()

    reply = call(partition, "a", "b", check_ids="2")

    assert reply == [NOW, NOW]
    assert partition.state()["bodies"] == {"a": FRESH, "b": FRESH}
    assert partition.state()["ready"] == {**before["ready"], "b": place(2)}
    assert partition.state()["counters"] == {"enqueued:t": 2}


def test_a_call_that_was_sent_before_does_not_take_anothers_job_for_its_own(partition: Partition) -> None:
    call(partition, "a", payload=b"[1]")
    before = partition.state()

    reply = call(partition, "a", payload=b"[2]", check_ids="2")

    assert reply == [NOW, NOW, 1, "taken"]
    assert partition.state() == {**before, "counters": {"enqueued:t": 1, "duplicates:t": 1}}


@pytest.mark.parametrize("void_seen", ["", str(NOW - 6)])
def test_an_id_that_was_voided_does_not_become_a_job(partition: Partition, void_seen: str) -> None:
    before = {"bodies": {"a": b""}, "voided": {"a": NOW - 5}}
    partition.put(before)

    reply = call(partition, "a", check_ids="1", void_seen=void_seen)

    assert reply == [NOW, NOW, 1, f"voided:{NOW - 5}"]
    assert partition.state() == {**before, "clock": NOW}


def test_a_producer_overwrites_the_very_void_that_it_has_seen(partition: Partition) -> None:
    partition.put({"bodies": {"a": b""}, "voided": {"a": NOW - 5}})

    reply = call(partition, "a", check_ids="1", void_seen=str(NOW - 5))

    assert reply == [NOW, NOW]
    assert partition.state() == {
        "clock": NOW,
        "sequence": 1,
        "bodies": {"a": FRESH},
        "ready": {"a": place(1)},
        "wake": ["1"],
        "counters": {"enqueued:t": 1},
    }


def test_a_thousand_jobs_fit_into_one_call(partition: Partition) -> None:
    ids = [f"{number:04}" for number in range(1_000)]

    call(partition, *ids)

    assert list(partition.state()["ready"]) == ids


def test_a_full_pool_takes_nothing_and_stays_as_it_is(partition: Partition) -> None:
    before: State = {
        "ready": {"r": place(1)},
        "throttled": {"t": place(2)},
        "scheduled": {"s": due(NOW + 9)},
        "retry_wait": {"w": due(NOW + 9)},
        "parked": {"x": 2},
        "bodies": {"v": b""},
        "voided": {"v": NOW - 5},
    }
    partition.put(before)

    with pytest.raises(PoolFull, match="6 jobs wait"):
        call(partition, "v", max_pending=6, check_ids="1", void_seen=str(NOW - 5))

    assert partition.state() == {**before, "clock": NOW}
    assert call(partition, "v", max_pending=7, check_ids="1", void_seen=str(NOW - 5)) == [NOW, NOW]


def test_a_call_that_was_made_before_is_not_refused_for_what_it_made(partition: Partition) -> None:
    call(partition, "a", max_pending=1)

    assert call(partition, "a", max_pending=1, check_ids="2") == [NOW, NOW]
