"""job_lease.lua: scheduled | retry_wait → ready → leased, ready → dead (corrupt)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.core.histogram import bucket_of
from jobs.store import scripts
from jobs.store.codec.bodies import TIMES
from jobs.store.codec.records import Record, decode_record
from tests.faults.seeded_bugs import DUE_BUG, RECALL_BUGS, LuaBug
from tests.support.partition import NOW, Partition, body, due, error, held, packed, place, record

FIRST = "first"
"""Stands in a reply for the record of a job that was never touched."""

CORRUPT = error("CorruptJob", "What is stored of this job cannot be read.")


ASKED = {
    "worker": "w",
    "seat": "w",
    "token": "new",
    "limit": 10,
    "lease_ms": 10_000,
    "attempts_kept": 25,
    "bundle_from": 20,
}


def call(partition: Partition, **changes: Any) -> Any:
    now, next_due, left, paused, corrupt, records, heads, *jobs = partition.run("job_lease", **ASKED | changes)
    record_at, head_at = _by_position(records), _by_position(heads)
    heads_told = accumulate(
        (head_at.get(at) for at in _positions(jobs)), lambda last, head: last if head is None else head
    )
    head_of = [head or b"" for head in heads_told]
    return {
        "now": now,
        "next_due": next_due,
        "left": left,
        "paused": paused,
        "corrupt": corrupt,
        "ids": jobs[::2],
        "records": [decode_record(record_at[at]) if at in record_at else FIRST for at in _positions(jobs)],
        "bodies": [head + _bytes(rest) for head, rest in zip(head_of, jobs[1::2], strict=True)],
    }


def _positions(jobs: list[Any]) -> range:
    return range(1, len(jobs) // 2 + 1)


def _by_position(told: list[Any]) -> dict[int, bytes]:
    return dict(zip(told[::2], map(_bytes, told[1::2]), strict=True))


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


def leased(**fields: Any) -> Record:
    """The record of a job that was just leased by ``call``."""
    facts = {"attempt": 1, "fence": 1, "leased_at": NOW, "place": place(1)}
    return record("leased", **{**facts, "token": "new", "worker": "w", **fields})


def times(created_at: float, run_at: float) -> bytes:
    """A body with these times."""
    return TIMES.pack(created_at, run_at) + body()[16:]


def test_the_first_in_line_are_given_with_all_that_a_worker_needs(partition: Partition) -> None:
    first, second = body(b"[1]"), body(b"[2]")
    partition.put(
        {
            "bodies": {"a": first, "b": second, "c": body()},
            "ready": {"a": place(1), "b": place(2), "c": place(3)},
            "sequence": 3,
        }
    )

    reply = call(partition, limit=2)

    assert reply == {
        "now": NOW,
        "next_due": "",
        "left": 1,
        "paused": "",
        "corrupt": 0,
        "ids": ["a", "b"],
        "records": [FIRST, FIRST],
        "bodies": [first, second],
    }
    assert partition.state() == {
        "clock": NOW,
        "sequence": 3,
        "bodies": {"a": first, "b": second, "c": body()},
        "ready": {"c": place(3)},
        "leased": {"a": NOW + 10_000, "b": NOW + 10_000},
        "states": {"a": leased(), "b": leased(place=place(2))},
        "grants": {"w": ["new", ["a", str(place(1)), "b", str(place(2))]]},
        "counters": {f"wait{bucket_of(5_000)}:t": 2, "wait_ms:t": 10_000},
        "wake": ["1"],
    }


def test_an_empty_line_gives_nothing_and_changes_nothing(partition: Partition) -> None:
    reply = call(partition)

    assert (reply["ids"], reply["left"], reply["next_due"]) == ([], 0, "")
    assert partition.state() == {"clock": NOW}


def test_the_same_token_again_gives_the_same_jobs_and_changes_nothing(partition: Partition) -> None:
    partition.put({"bodies": {"a": body(), "b": body()}, "ready": {"a": place(1), "b": place(2)}})
    first = call(partition, limit=1)
    before = partition.state()

    again = call(partition, limit=1)

    assert (again["ids"], again["bodies"]) == (first["ids"], first["bodies"])
    assert again["records"] == [leased()]
    assert partition.state() == before


def test_the_same_token_again_leaves_out_what_ended_meanwhile(partition: Partition) -> None:
    partition.put({"bodies": {"a": body(), "b": body()}, "ready": {"a": place(1), "b": place(2)}})
    call(partition)
    partition.put({"states": {"a": leased()._replace(state="succeeded")}})

    again = call(partition)

    assert again["ids"] == ["b"]


def test_another_token_of_the_same_worker_gets_other_jobs(partition: Partition) -> None:
    partition.put({"bodies": {"a": body(), "b": body()}, "ready": {"a": place(1), "b": place(2)}})
    call(partition, limit=1)

    reply = call(partition, token="other", limit=1)

    assert reply["ids"] == ["b"]
    assert partition.state()["grants"] == {"w": ["other", ["b", str(place(2))]]}


@pytest.mark.parametrize("line", [[True, "1"], [None], "a", 7, None])
def test_a_repeated_call_whose_memory_went_bad_is_told_of_no_job(partition: Partition, line: object) -> None:
    partition.put({"bodies": {"a": body()}, "ready": {"a": place(1)}, "grants": {"w": ["new", line]}})

    assert call(partition)["ids"] == []


def test_what_is_due_is_made_ready_first_and_what_is_not_stays(partition: Partition) -> None:
    bodies = {job_id: body(run_at=NOW) for job_id in "abcd"}
    retried = record("retry_wait", attempt=2, errors=2, fence=2, run_at=NOW, place=place(9))
    partition.put(
        {
            "bodies": bodies,
            "states": {"b": retried, "d": retried},
            "scheduled": {"a": due(NOW), "c": due(NOW + 1)},
            "retry_wait": {"b": due(NOW), "d": due(NOW + 2)},
        }
    )

    reply = call(partition)

    assert reply["ids"] == ["a", "b"]
    assert reply["next_due"] == NOW + 1
    assert list(partition.state()["scheduled"]) == ["c"]
    assert list(partition.state()["retry_wait"]) == ["d"]
    assert partition.state()["states"]["b"] == leased(
        attempt=3, errors=2, fence=3, ready_at=NOW, run_at=NOW, place=place(2)
    )


def test_a_paused_pool_gives_nothing_but_still_makes_due_jobs_ready(partition: Partition) -> None:
    partition.put({"control": {"paused_until": str(NOW + 9)}, "bodies": {"a": body()}, "scheduled": {"a": due(NOW)}})

    reply = call(partition)

    assert (reply["paused"], reply["left"], reply["ids"]) == ("1", 1, [])
    assert partition.state() == {
        "clock": NOW,
        "sequence": 1,
        "control": {"paused_until": str(NOW + 9)},
        "bodies": {"a": body()},
        "ready": {"a": place(1)},
    }


@pytest.mark.parametrize(("until", "ids"), [(NOW + 1, []), (NOW, ["a"]), (NOW - 1, ["a"])])
def test_a_pause_ends_by_itself_at_its_moment(partition: Partition, until: int, ids: list[str]) -> None:
    partition.put({"control": {"paused_until": until}, "bodies": {"a": body()}, "ready": {"a": place(1)}})

    assert call(partition)["ids"] == ids


def test_jobs_of_a_paused_type_are_set_aside_and_do_not_block_those_behind_them(partition: Partition) -> None:
    touched = record("ready", attempt=1, errors=1, fence=1, ready_at=NOW - 5, place=place(2))
    partition.put(
        {
            "control": {"paused_types": msgspec.msgpack.encode({"slow": NOW + 1, "over": NOW})},
            "bodies": {
                "a": body(type="slow"),
                "b": body(type="slow"),
                "c": body(type="over"),
                "d": body(),
                "e": body(type="slow"),
            },
            "states": {"b": touched},
            "ready": {name: place(number) for number, name in enumerate("abcde", 1)},
        }
    )

    assert call(partition, limit=2)["ids"] == ["c", "d"]
    state = partition.state()
    assert (state["parked"], state["parked_of:slow"]) == ({"slow": 2}, {"a": place(1), "b": place(2)})
    assert (state["states"]["a"], state["states"]["b"]) == (record("ready", place=place(1)), touched)
    assert state["ready"] == {"e": place(5)}, "nobody asked for more"


def test_nodes_of_a_paused_run_stand_aside_with_it_as_they_are_and_nothing_else_does(partition: Partition) -> None:
    partition.put(
        {
            "control": {"halted": 1},
            "halted": {"run": 1, "other": -2},
            "nodes": {"a": "run\nx", "c": "other\nx", "d": "runs\nx"},
            "bodies": dict.fromkeys("abcd", body()),
            "ready": {name: place(number) for number, name in enumerate("abcd", 1)},
        }
    )

    assert call(partition, limit=3)["ids"] == ["b", "c", "d"]
    state = partition.state()
    assert (state["parked"], state["parked_of:\nrun"]) == ({"\nrun": 1}, {"a": place(1)})
    assert state["states"]["a"] == record("ready", place=place(1))


def test_many_jobs_of_a_paused_type_do_not_hold_the_server_up(partition: Partition) -> None:
    names = [f"{number:04}" for number in range(1_200)]
    partition.put(
        {
            "control": {"paused_types": msgspec.msgpack.encode({"t": NOW + 1})},
            "bodies": dict.fromkeys(names, body()),
            "ready": {name: place(number) for number, name in enumerate(names)},
        }
    )

    assert (call(partition)["ids"], partition.state()["parked"]) == ([], {"t": 1_000})
    assert partition.state()["wake"] == ["1"], "whoever is woken goes on"
    assert (call(partition)["ids"], partition.state()["parked"]) == ([], {"t": 1_200})


def test_what_is_corrupt_is_found_though_its_type_is_paused(partition: Partition) -> None:
    partition.put(
        {
            "control": {"paused_types": msgspec.msgpack.encode({"t": NOW + 1})},
            "bodies": {"a": body()},
            "states": {"a": packed(record("ready"))[:-1]},
            "ready": {"a": place(1)},
        }
    )

    assert (call(partition)["corrupt"], list(partition.state()["dead"])) == (1, ["a"])


@pytest.mark.parametrize("garbage", [b"\xc1", b"x", b"\x90", b"\x81\xa1t\xa1x"])
def test_pauses_of_types_that_cannot_be_read_hold_nothing(partition: Partition, garbage: bytes) -> None:
    partition.put({"control": {"paused_types": garbage}, "bodies": {"a": body()}, "ready": {"a": place(1)}})

    assert call(partition)["ids"] == ["a"]


@pytest.mark.parametrize(
    ("body_stored", "record_stored"),
    [
        pytest.param(None, None, id="no body"),
        pytest.param(b"short", None, id="a body that is too short"),
        pytest.param(b"\xff" * 40, None, id="a body whose times are no numbers"),
        pytest.param(times(NOW - 0.5, NOW), None, id="a body whose times are fractions"),
        pytest.param(times(float("inf"), NOW), None, id="a body whose times are endless"),
        pytest.param(times(NOW, 1e300), None, id="a body whose times no calendar has"),
        pytest.param(times(-2.0, -1.0), None, id="a body from before there were computers"),
        pytest.param(body(), b"\xc1", id="a record of no known state"),
        pytest.param(body(), packed(record("ready"))[:-1], id="a record that is cut off"),
        pytest.param(body(), b"\x00" + packed(record("ready"))[1:], id="a record of state 0"),
    ],
)
def test_a_job_that_cannot_be_read_is_buried_and_the_others_go_on(
    partition: Partition, body_stored: bytes | None, record_stored: bytes | None
) -> None:
    partition.put({"bodies": {"good": body()}, "ready": {"bad": place(1), "good": place(2)}})
    if body_stored is not None:
        partition.put({"bodies": {"bad": body_stored}})
    if record_stored is not None:
        partition.put({"states": {"bad": record_stored}})

    reply = call(partition)

    assert (reply["corrupt"], reply["ids"]) == (1, ["good"])
    state = partition.state()
    assert state["dead"] == {"bad": NOW}
    assert state["states"]["bad"] == record("dead", finished_at=NOW)
    assert state["attempts"] == {"bad": [(0, "", 0, NOW, "failed", CORRUPT)]}
    assert "ready" not in state


def test_a_stray_entry_of_a_job_that_is_not_ready_is_dropped_and_its_state_kept(partition: Partition) -> None:
    ended = record("succeeded", attempt=1, fence=1, finished_at=NOW)
    partition.put({"bodies": {"a": body()}, "states": {"a": ended}, "succeeded": {"a": NOW}, "ready": {"a": place(1)}})

    reply = call(partition)

    assert reply["ids"] == []
    assert partition.state() == {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": ended},
        "succeeded": {"a": NOW},
    }


def test_large_bodies_end_a_reply_early(partition: Partition) -> None:
    ids = [f"{number:03}" for number in range(150)]
    partition.put(
        {
            "bodies": {job_id: body(b"x" * 250_000) for job_id in ids},
            "ready": {job_id: place(number) for number, job_id in enumerate(ids)},
        }
    )

    reply = call(partition, limit=1_000)

    assert 0 < len(reply["ids"]) <= 100
    assert reply["left"] == 150 - len(reply["ids"])


def test_a_lease_after_another_keeps_the_count_of_deliveries(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body()},
            "states": {"a": record("ready", attempt=2, errors=1, crashes=1, fence=4, ready_at=NOW - 1, lost=3)},
            "ready": {"a": place(1)},
        }
    )

    call(partition)

    assert partition.state()["states"]["a"] == leased(attempt=3, errors=1, crashes=1, fence=5, ready_at=NOW - 1, lost=3)


def test_a_job_that_is_held_is_not_given_again(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW - 1}})

    assert call(partition)["ids"] == []


def test_what_neighbours_share_is_told_once_and_other_bodies_as_they_are(partition: Partition) -> None:
    alike = [body(b"[%d]" % number) for number in range(3)]
    odd = [body(b"[%d]" % number, rate_key="k" * number) for number in (3, 4, 5)]
    bodies = dict(zip("abcdefg", [*alike, *odd, odd[-1]], strict=True))
    partition.put({"ready": {job_id: place(at) for at, job_id in enumerate(bodies)}, "bodies": bodies})

    head = alike[0][: -len(b"[0]")]
    reply = partition.run("job_lease", **ASKED)
    heads, told = reply[6], list(map(_bytes, reply[8::2]))

    assert heads[::2] == [2, 4, 7]
    assert list(map(_bytes, heads[1::2])) == [head, b"", odd[-1][: -len(b"[5]")]]
    assert told == [alike[0], b"[1]", b"[2]", *odd, b"[5]"]


def test_a_call_that_is_recalled_before_it_is_carried_out_takes_nothing_and_wakes_another(partition: Partition) -> None:
    call(partition, seat="w standing", limit=0)
    partition.put({"bodies": {"a": body()}, "ready": {"a": place(1)}})

    assert call(partition, seat="w standing")["ids"] == []
    assert partition.state().get("wake") == ["1"]
    assert call(partition, seat="w standing", token="next")["ids"] == ["a"]


def test_a_call_that_was_recalled_lets_another_learn_what_is_due_next(partition: Partition) -> None:
    call(partition, seat="w standing", limit=0)
    partition.put({"bodies": {"a": body()}, "scheduled": {"a": NOW + 5000}})

    call(partition, seat="w standing")

    assert partition.state().get("wake") == ["1"]


def test_a_call_that_is_recalled_later_brings_back_what_it_has_taken(partition: Partition) -> None:
    partition.put({"bodies": {"a": body(), "b": body()}, "ready": {"a": place(1), "b": place(2)}})
    call(partition, seat="w standing", limit=1)
    call(partition, token="another", limit=1)

    recalled = call(partition, seat="w standing", limit=0)

    assert recalled["ids"] == ["a"]
    assert recalled["records"] == [leased()]


@pytest.mark.parametrize(
    ("bug", "story"),
    [
        *(
            (bug, test_a_call_that_is_recalled_before_it_is_carried_out_takes_nothing_and_wakes_another)
            for bug in RECALL_BUGS
        ),
        (DUE_BUG, test_a_call_that_was_recalled_lets_another_learn_what_is_due_next),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_mistake_about_recalled_calls_is_caught(
    bug: LuaBug,
    story: Callable[[Partition], None],
    partition: Partition,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCHEDULER_LUA_DIR", str(bug.plant(tmp_path)))
    scripts.script.cache_clear()
    try:
        with pytest.raises(AssertionError):
            story(partition)
    finally:
        scripts.script.cache_clear()
