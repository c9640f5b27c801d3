"""job_fail.lua: leased → retry_wait | dead | scheduled | cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, due, held, record

STARTED = NOW - 400
FAILURE = '{"type":"E"}'


def item(job_id: str, outcome: str, *, token: str = "token", delay: int = 0, priority: int = 0) -> list[Any]:
    return [job_id, token, "t", STARTED, outcome, delay, priority, FAILURE]


def call(partition: Partition, *items: list[Any], attempts_kept: int = 25) -> Any:
    return partition.run("job_fail", *[value for one in items for value in one], attempts_kept=attempts_kept)


def lease(partition: Partition, job_id: str = "a", **fields: Any) -> None:
    partition.put({"states": {job_id: held(**fields)}, "leased": {job_id: NOW + 5_000}})


def test_a_retry_waits_for_its_backoff_at_the_jobs_priority(partition: Partition) -> None:
    lease(partition, lost=3)

    reply = call(partition, item("a", "retry", delay=750, priority=5))

    assert reply == ["retry_wait"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="retry_wait", errors=1, started_at=STARTED, run_at=NOW + 750)},
        "retry_wait": {"a": due(NOW + 750, priority=5)},
        "attempts": {"a": [(1, "w", STARTED, NOW, "failed", FAILURE)]},
        "counters": {"failed:t": 1, "failed_ms:t": 400, "retried:t": 1},
        "wake": ["1"],
    }


def test_a_dead_job_goes_to_the_dead_letter_list(partition: Partition) -> None:
    lease(partition, errors=3, attempt=4)

    reply = call(partition, item("a", "dead"))

    assert reply == ["dead"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="dead", attempt=4, errors=4, started_at=STARTED, finished_at=NOW)},
        "dead": {"a": NOW},
        "attempts": {"a": [(4, "w", STARTED, NOW, "failed", FAILURE)]},
        "counters": {"failed:t": 1, "failed_ms:t": 400, "dead:t": 1},
    }


def test_a_snoozed_job_is_scheduled_again_and_nothing_is_charged(partition: Partition) -> None:
    lease(partition, attempt=2, errors=1)

    reply = call(partition, item("a", "snooze", delay=90_000))

    assert reply == ["scheduled"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="scheduled", attempt=1, errors=1, run_at=NOW + 90_000)},
        "scheduled": {"a": due(NOW + 90_000)},
        "counters": {"snoozed:t": 1},
        "wake": ["1"],
    }


def test_a_job_that_stops_itself_is_cancelled_and_charged_no_error(partition: Partition) -> None:
    lease(partition)

    reply = call(partition, item("a", "cancelled"))

    assert reply == ["cancelled"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": held(state="cancelled", started_at=STARTED, finished_at=NOW)},
        "cancelled": {"a": NOW},
        "attempts": {"a": [(1, "w", STARTED, NOW, "cancelled", FAILURE)]},
        "counters": {"cancelled:t": 1},
    }


@pytest.mark.parametrize("outcome", ["retry", "dead", "snooze", "cancelled"])
def test_a_job_that_was_asked_to_stop_is_cancelled_whatever_the_outcome(partition: Partition, outcome: str) -> None:
    lease(partition, cancel=1)

    assert call(partition, item("a", outcome)) == ["cancelled"]
    assert partition.state()["cancelled"] == {"a": NOW}
    assert partition.state()["states"]["a"].state == "cancelled"


def test_only_the_earliest_retry_wakes_a_waiting_fetcher(partition: Partition) -> None:
    lease(partition)
    partition.put({"retry_wait": {"first": due(NOW + 10)}})

    call(partition, item("a", "retry", delay=11))

    assert "wake" not in partition.state()


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("retry", "retry_wait"), ("dead", "dead"), ("snooze", "scheduled"), ("cancelled", "cancelled")],
)
def test_the_same_call_again_answers_the_same_and_changes_nothing(
    partition: Partition, outcome: str, state: str
) -> None:
    lease(partition)
    assert call(partition, item("a", outcome, delay=100)) == [state]
    before = partition.state()

    assert call(partition, item("a", outcome, delay=100)) == [state]
    assert partition.state() == before


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(b"\xc1", id="an unreadable record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready"), id="taken back"),
        pytest.param(record("dead", token="another"), id="buried under another token"),
    ],
)
def test_a_stale_failure_changes_nothing_and_is_counted(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    for outcome in ("retry", "dead", "snooze", "cancelled"):
        assert call(partition, item("a", outcome)) == ["lost"]
    assert partition.state() == {**before, "clock": NOW, "counters": {"stale:t": 4}}


def test_a_retry_that_came_due_meanwhile_is_not_taken_for_a_loss(partition: Partition) -> None:
    """The reply to the first call was lost; when it is sent again the job is ready once more."""
    before: dict[str, Any] = {"states": {"a": record("ready", token="token", errors=1)}}
    partition.put(before)

    assert call(partition, item("a", "retry")) == ["ready"]
    assert partition.state() == {**before, "clock": NOW}


def test_only_the_newest_attempts_are_kept(partition: Partition) -> None:
    for attempt in range(1, 6):
        lease(partition, attempt=attempt)
        call(partition, item("a", "retry"), attempts_kept=3)

    assert [entry[0] for entry in partition.state()["attempts"]["a"]] == [3, 4, 5]


def test_a_history_that_cannot_be_read_begins_anew(partition: Partition) -> None:
    lease(partition)
    partition.put({"attempts": {"a": b"\x19\xc1\xc1"}})

    call(partition, item("a", "retry"))

    assert partition.state()["attempts"] == {"a": [(1, "w", STARTED, NOW, "failed", FAILURE)]}


def test_a_failure_without_an_error_is_stored_as_such(partition: Partition) -> None:
    lease(partition)

    call(partition, [*item("a", "dead")[:-1], b""])

    assert partition.state()["attempts"] == {"a": [(1, "w", STARTED, NOW, "failed", False)]}
