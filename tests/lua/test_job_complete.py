"""job_complete.lua: leased → succeeded | cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.histogram import bucket_of
from jobs.exceptions import SchedulerError
from jobs.store.codec.records import encode_run
from tests.support.partition import NOW, Partition, body, held, record

STARTED = NOW - 400


def item(job_id: str, *, token: str = "token", result: bytes = b"", ttl: int | str = "") -> list[Any]:
    return [token, "t", ttl, "1" if result else "", 1, encode_run(STARTED, 1), job_id, *([result] if result else [])]


def call(partition: Partition, *items: list[Any]) -> Any:
    return partition.run("job_complete", *[value for one in items for value in one], attempts_kept=25)


def ended(state: str, **fields: Any) -> Any:
    return held(**{"state": state, "started_at": STARTED, "finished_at": NOW, **fields})


def test_attempts_that_succeeded_end_their_jobs(partition: Partition) -> None:
    bodies = {job_id: body() for job_id in "abc"}
    partition.put(
        {
            "bodies": bodies,
            "states": {"a": held(lost=2), "b": held(), "c": held()},
            "leased": dict.fromkeys("abc", NOW + 5000),
        }
    )

    reply = call(partition, item("a", result=b'{"n":1}'), item("b", ttl=60_000))

    assert reply == []
    assert partition.state() == {
        "clock": NOW,
        "bodies": bodies,
        "states": {"a": ended("succeeded", place=0), "b": ended("succeeded", place=0), "c": held()},
        "leased": {"c": NOW + 5_000},
        "succeeded": {"a": NOW, "b": NOW},
        "results": {"a": '{"n":1}'},
        "expiring": {"b": NOW + 60_000},
        "counters": {f"run{bucket_of(400)}:t": 2, "run_ms:t": 800},
    }


def test_a_job_that_was_asked_to_stop_ends_cancelled_and_its_result_is_dropped(partition: Partition) -> None:
    partition.put({"states": {"a": held(cancel=1)}, "leased": {"a": NOW + 5_000}})

    reply = call(partition, item("a", result=b"1", ttl=5))

    assert reply == [1, "cancelled"]
    assert partition.state() == {
        "clock": NOW,
        "states": {"a": ended("cancelled", cancel=1)},
        "cancelled": {"a": NOW},
        "attempts": {"a": [(1, "w", STARTED, NOW, "cancelled", False)]},
        "counters": {"cancelled:t": 1},
    }


def test_the_same_call_again_answers_the_same_and_changes_nothing(partition: Partition) -> None:
    partition.put({"states": {"a": held(), "b": held(cancel=1)}, "leased": {"a": NOW + 5_000, "b": NOW + 5_000}})
    items = item("a", result=b"1"), item("b")
    assert call(partition, *items) == [2, "cancelled"]
    before = partition.state()

    assert call(partition, *items) == [2, "cancelled"]
    assert partition.state() == before


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(b"\xc1", id="an unreadable record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="taken back"),
        pytest.param(record("retry_wait", token="token"), id="failed under this token"),
        pytest.param(record("dead", token="token"), id="buried under this token"),
        pytest.param(record("succeeded", token="another"), id="succeeded under another token"),
    ],
)
def test_a_stale_completion_changes_nothing_and_is_counted(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert call(partition, item("a", result=b"1", ttl=5)) == [1, "lost"]
    assert partition.state() == {**before, "clock": NOW, "counters": {"stale:t": 1}}


def test_a_stale_one_among_others_does_not_hold_them_up(partition: Partition) -> None:
    partition.put({"states": {"a": held(token="another"), "b": held()}, "leased": {"a": NOW + 1, "b": NOW + 1}})

    assert call(partition, item("a"), item("b")) == [1, "lost"]
    assert partition.state()["leased"] == {"a": NOW + 1}
    assert partition.state()["succeeded"] == {"b": NOW}


def test_jobs_of_one_lease_end_by_one_group_whatever_became_of_their_neighbours(partition: Partition) -> None:
    stored = {
        "a": held(attempt=1),
        "b": held(token="another"),
        "c": held(attempt=1),
        "d": held(attempt=7, errors=6, worker="a longer name"),
        "e": held(cancel=1),
        "f": held(attempt=7, errors=6, worker="a longer name", started_at=STARTED - 1),
    }
    partition.put({"states": stored, "leased": dict.fromkeys(stored, NOW + 5_000)})
    results = [value for job_id in stored for value in (job_id, job_id)]

    reply = partition.run(
        "job_complete", "token", "t", "", "1", 1, encode_run(STARTED, len(stored)), *results, attempts_kept=25
    )

    assert reply == [2, "lost", 5, "cancelled"]
    after = partition.state()
    assert after["states"] == {
        "a": ended("succeeded", place=0),
        "b": stored["b"],
        "c": ended("succeeded", place=0),
        "d": ended("succeeded", attempt=7, errors=6, worker="a longer name", place=0),
        "e": ended("cancelled", cancel=1),
        "f": ended("succeeded", attempt=7, errors=6, worker="a longer name", place=0),
    }
    assert after["results"] == {"a": "a", "c": "c", "d": "d", "f": "f"}
    assert after["leased"] == {"b": NOW + 5_000}
    assert after["counters"] == {f"run{bucket_of(400)}:t": 4, "run_ms:t": 1_600, "cancelled:t": 1, "stale:t": 1}


def test_groups_have_runs_of_their_own_starts_and_results_or_none(partition: Partition) -> None:
    stored = {job_id: held() for job_id in "abcd"}
    partition.put({"states": stored, "leased": dict.fromkeys(stored, NOW + 5_000)})

    early = ("token", "t", "", "", 2, encode_run(NOW - 400, 1), "a", encode_run(NOW - 30, 1), "b")
    late = ("token", "t", "", "1", 1, encode_run(NOW - 30, 2), "c", "3", "d", "4")
    reply = partition.run("job_complete", *early, *late, attempts_kept=25)

    assert reply == []
    after = partition.state()
    assert {job_id: state.started_at for job_id, state in after["states"].items()} == {
        "a": NOW - 400,
        "b": NOW - 30,
        "c": NOW - 30,
        "d": NOW - 30,
    }
    assert after["results"] == {"c": "3", "d": "4"}
    assert after["counters"] == {f"run{bucket_of(400)}:t": 1, f"run{bucket_of(30)}:t": 3, "run_ms:t": 490}


def test_a_group_that_claims_more_jobs_than_it_brings_changes_nothing(partition: Partition) -> None:
    partition.put({"states": {"a": held()}, "leased": {"a": NOW + 1}})

    with pytest.raises(SchedulerError, match="counts more"):
        partition.run("job_complete", "token", "t", "", "", 1, encode_run(STARTED, 9_999), "a", attempts_kept=25)
    assert partition.state()["leased"] == {"a": NOW + 1}
