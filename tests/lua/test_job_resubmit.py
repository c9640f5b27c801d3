"""job_resubmit.lua: dead | cancelled → ready, with fresh budgets and the history kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, State, body, due, held, place, record

CANCELLED: State = {"bodies": {"a": body()}, "states": {"a": record("cancelled")}, "cancelled": {"a": NOW}}
HISTORY = [(4, "w", NOW - 9, NOW - 8, "failed", "{}")]


def call(partition: Partition, *ids: str, payload: bytes = b"", ended_by: int | str = "") -> Any:
    return partition.run("job_resubmit", *ids, payload=payload, ended_by=ended_by)


@pytest.mark.parametrize("state", ["dead", "cancelled"])
def test_an_ended_job_lives_again_at_the_end_of_the_line(partition: Partition, state: str) -> None:
    partition.put(
        {
            "bodies": {"a": body(priority=2)},
            "states": {
                "a": held(
                    state=state,
                    attempt=4,
                    errors=4,
                    crashes=2,
                    fence=4,
                    lost=1,
                    cancel=1,
                    resubmissions=1,
                    started_at=NOW - 9,
                    finished_at=NOW - 8,
                    run_at=NOW - 7,
                )
            },
            state: {"a": NOW - 8},
            "attempts": {"a": HISTORY},
            "progress": {"a": b"\x93"},
            "sequence": 6,
        }
    )

    assert call(partition, "a") == ["ok"]
    assert partition.state() == {
        "clock": NOW,
        "sequence": 7,
        "bodies": {"a": body(priority=2)},
        "states": {
            "a": record("ready", fence=4, resubmissions=2, ready_at=NOW, place=place(7, priority=2)),
        },
        "ready": {"a": place(7, priority=2)},
        "attempts": {"a": HISTORY},
        "counters": {"resubmitted:t": 1},
        "wake": ["1"],
    }


def test_a_new_payload_replaces_the_old_one_and_nothing_else_of_the_body(partition: Partition) -> None:
    options: dict[str, Any] = {"type": "email.send", "tags": ("x",), "max_retries": 7}
    partition.put({"bodies": {"a": body(b'{"n":1}', **options)}, "states": {"a": record("dead")}, "dead": {"a": NOW}})

    call(partition, "a", payload=b'{"n":[]}')

    assert partition.state()["bodies"] == {"a": body(b'{"n":[]}', **options)}


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("JOB_NOT_FOUND", {}),
        ("JOB_NOT_FOUND", {"bodies": {"a": b""}, "voided": {"a": NOW}}),
        ("scheduled", {"bodies": {"a": body()}, "scheduled": {"a": due(NOW + 1)}}),
        ("leased", {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}),
        ("succeeded", {"bodies": {"a": body()}, "states": {"a": record("succeeded")}, "succeeded": {"a": NOW}}),
        ("moved", {**CANCELLED, "results": {"a": '{"moved_to":"b","pool":"p","move":"m1"}'}}),
        ("unreadable", {"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "dead": {"a": NOW}}),
        ("unreadable", {"bodies": {"a": b"x" * 40}, "states": {"a": record("dead")}, "dead": {"a": NOW}}),
    ],
)
def test_what_cannot_live_again_stays_as_it_is(partition: Partition, answer: str, before: State) -> None:
    partition.put(before)
    before = partition.state()

    assert call(partition, "a") == [answer]
    assert partition.state() == {**before, "clock": NOW}


def test_each_job_of_a_call_is_decided_for_itself(partition: Partition) -> None:
    partition.put({"bodies": {"a": body(), "b": body()}, "states": {"b": record("dead")}, "dead": {"b": NOW}})

    assert call(partition, "a", "b", "c") == ["ready", "ok", "JOB_NOT_FOUND"]
    assert list(partition.state()["ready"]) == ["b"]


def test_one_that_ended_after_the_given_moment_stays_as_it_is(partition: Partition) -> None:
    before: State = {
        "bodies": {"a": body(), "b": body()},
        "states": {"a": held(state="dead", finished_at=NOW - 1), "b": held(state="dead", finished_at=NOW - 2)},
        "dead": {"a": NOW - 1, "b": NOW - 2},
    }
    partition.put(before)

    assert call(partition, "a", "b", ended_by=NOW - 2) == ["later", "ok"]
    assert partition.state()["dead"] == {"a": NOW - 1}
