"""A key of the wrong type is an error before anything is written: scripts are isolated, but not rolled back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs.exceptions import StoreRefused
from jobs.store.codec.records import encode_run
from jobs.store.scripts import LUA_DIR, script
from tests.support.partition import NOW, Partition, State, body, due, held, place, record
from tests.support.steps import everything

WAITING: State = {
    "bodies": {"a": body(), "b": body(), "c": body()},
    "states": {"b": record("retry_wait", attempt=1, errors=1), "c": record("ready", attempt=1)},
    "scheduled": {"a": due(NOW)},
    "retry_wait": {"b": due(NOW)},
    "ready": {"c": place(1)},
}
HELD: State = {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}
TIED: State = {
    "bodies": {"a": body(), "b": body()},
    "states": {"a": held(place=0), "b": held(place=0)},
    "leased": {"\ntoken": NOW},
    "bundles": {"token": ["token", ["a", str(place(1)), "b", str(place(2))]]},
    "bundled": {"token": 2},
}
"""Two jobs in one bundle: no place stands in their records."""
STARTED: State = {**HELD, "states": {"a": held(started_at=NOW - 1)}}
STOPPED: State = {**HELD, "states": {"a": held(cancel=1)}}
LAST_CRASH: State = {**HELD, "bodies": {"a": body(max_crashes=1)}}
DEAD: State = {"bodies": {"a": body()}, "states": {"a": record("dead")}, "dead": {"a": NOW}}
PARKED: State = {"bodies": {"a": body()}, "states": {"a": record("ready")}, "parked": {"t": 1}, "parked_of:t": {"a": 1}}
THROTTLED: State = {"bodies": {"a": body()}, "states": {"a": record("ready")}, "throttled": {"a": place(1)}}
OLD: State = {
    "bodies": {"a": body(), "v": b""},
    "voided": {"v": 1},
    "grants": {"w": ["t"]},
}
COUNTED: State = {f"live:{NOW // 10_000 - 40}": {"failed:t": 1}}

KEPT = {"attempts_kept": 25}
PREFIXES = ("live", "lines", "log_of", "parked_of")
CREATE = {
    "check_ids": "1",
    "type": "t",
    "priority": 0,
    "delay": 0,
    "run_at": "",
    "void_seen": "1",
    "max_pending": "",
    "header": "",
}
LEASE = {"worker": "w", "seat": "w", "token": "n", "limit": 9, "lease_ms": 9, "bundle_from": 20, **KEPT}
COMPLETE = ("token", "t", "", "", 1, encode_run(NOW, 1), "a")
KEEP = ("token", "t", 60_000, "1", 1, encode_run(NOW, 1), "a", "{}")
FAIL = ("a", "token", "t", NOW, "retry", 5, 0, "{}")

CALLS: dict[str, tuple[State, str, tuple[Any, ...], dict[str, Any]]] = {
    "enqueue": ({}, "job_enqueue", ("a", body()[16:]), CREATE),
    "enqueue later": ({}, "job_enqueue", ("a", body()[16:]), {**CREATE, "delay": 5}),
    "enqueue a voided id": ({"bodies": {"a": b""}, "voided": {"a": 1}}, "job_enqueue", ("a", body()[16:]), CREATE),
    "lease": (WAITING, "job_lease", (), LEASE),
    "lease the only one": ({"bodies": {"a": body()}, "ready": {"a": place(1)}}, "job_lease", (), LEASE),
    "lease one of a paused type": (
        {
            "bodies": {"a": body()},
            "ready": {"a": place(1)},
            "control": {"paused_types": msgspec.msgpack.encode({"t": NOW + 1})},
        },
        "job_lease",
        (),
        LEASE,
    ),
    "recall": ({}, "job_lease", (), {**LEASE, "limit": 0}),
    "lease a bad one": ({"ready": {"a": 1}}, "job_lease", (), LEASE),
    "lease a bundle": (
        {"bodies": {"a": body(), "b": body()}, "ready": {"a": place(1), "b": place(2)}},
        "job_lease",
        (),
        {**LEASE, "bundle_from": 2},
    ),
    "promote": (WAITING, "job_promote", (), {"limit": 9}),
    "start": (HELD, "job_start", ("a", "token", NOW), {}),
    "start in a bundle": (TIED, "job_start", ("a", "token", NOW), {}),
    "open a bundle": (TIED, "bundle_open", ("token",), {}),
    "renew in a bundle": (TIED, "job_renew", ("a", "token"), {"lease_ms": 9}),
    "complete in a bundle": (TIED, "job_complete", COMPLETE, KEPT),
    "fail in a bundle": (TIED, "job_fail", FAIL, KEPT),
    "cancel in a bundle": (TIED, "job_cancel", (), {"id": "a", "only_waiting": ""}),
    "recover a bundle": (TIED, "job_recover", (), {"limit": 9, "lease_ms": 9, "elapsed": "", **KEPT}),
    "renew": (HELD, "job_renew", ("a", "token"), {"lease_ms": 9}),
    "complete": (HELD, "job_complete", COMPLETE, KEPT),
    "complete with a result that is kept": (HELD, "job_complete", KEEP, KEPT),
    "complete a stopped one": (STOPPED, "job_complete", COMPLETE, KEPT),
    "fail to retry": (HELD, "job_fail", FAIL, KEPT),
    "fail for good": (HELD, "job_fail", (*FAIL[:4], "dead", *FAIL[5:]), KEPT),
    "snooze": (HELD, "job_fail", (*FAIL[:4], "snooze", *FAIL[5:]), KEPT),
    "stop": (STOPPED, "job_fail", FAIL, KEPT),
    "release": (HELD, "job_release", ("a", "token"), {"charged": "", **KEPT}),
    "release charged": (HELD, "job_release", ("a", "token"), {"charged": "1", **KEPT}),
    "release a stopped one": (STOPPED, "job_release", ("a", "token"), {"charged": "", **KEPT}),
    "crash": (HELD, "job_crash", ("a", "token", NOW), {"failure": "{}", **KEPT}),
    "last crash": (LAST_CRASH, "job_crash", ("a", "token", NOW), {"failure": "{}", **KEPT}),
    "recover": (HELD, "job_recover", (), {"limit": 9, "lease_ms": 9, "elapsed": "", **KEPT}),
    "recover a started one": (STARTED, "job_recover", (), {"limit": 9, "lease_ms": 9, "elapsed": "", **KEPT}),
    "park": (HELD, "job_park", ("a", "token", "t"), {}),
    "park a stopped one": (STOPPED, "job_park", ("a", "token", "t"), {}),
    "throttle": (HELD, "job_throttle", ("a", "token"), {}),
    "throttle a stopped one": (STOPPED, "job_throttle", ("a", "token"), {}),
    "admit": (THROTTLED, "job_admit", ("a",), {}),
    "unpark": (PARKED, "job_unpark", (), {"type": "t", "limit": 9, "wakes": "1"}),
    "progress": (HELD, "job_progress", ("a", "token", "p"), {}),
    "log": (
        HELD,
        "job_log",
        ("a", "token", 0, 1, "line"),
        {"keep_lines": 9, "keep_bytes": 99, "keep_attempts": 2},
    ),
    "cancel": (WAITING, "job_cancel", (), {"id": "a", "only_waiting": ""}),
    "cancel a parked one": (PARKED, "job_cancel", (), {"id": "a", "only_waiting": ""}),
    "cancel a leased one": (HELD, "job_cancel", (), {"id": "a", "only_waiting": ""}),
    "run now": (WAITING, "job_run_now", (), {"id": "a"}),
    "move": (WAITING, "job_move", ("a", "{}"), {"mark": "m", "only_finish": ""}),
    "end a move": (DEAD, "job_move_end", ("a",), {}),
    "prioritize": (WAITING, "job_prioritize", ("a",), {"priority": 5}),
    "resubmit": (DEAD, "job_resubmit", ("a",), {"payload": "[]", "ended_by": ""}),
    "discard": (DEAD, "job_discard", ("a",), {"ended_by": ""}),
    "void": ({}, "job_void", (), {"id": "a"}),
    "fold": (COUNTED, "figures_fold", (), {"keep_live": 4, "keep_seconds": 9, "keep_minutes": 3_600_000}),
    "cap": ({}, "pool_cap", (), {"share": 1, "version": 1}),
    "tidy": (OLD, "partition_tidy", ("w",), {}),
    "pause": ({}, "partition_pause", (), {"version": 1, "until_ms": 9, "types": ""}),
    "halt": ({}, "partition_halt", (), {"run": "r", "version": 1, "what": "halt", "not_after": NOW}),
}


def cases(*, checked: bool) -> list[Any]:
    """Each call with each of its keys spoiled in turn. ``checked``: of scripts whose keys are all checked beforehand,
    or of those that check what they need themselves."""
    return [
        pytest.param(*call, key, id=f"{name}: {key}")
        for name, call in CALLS.items()
        for key in script(call[1]).keys
        if key not in PREFIXES and script(call[1]).is_checked == checked
    ]


@pytest.mark.parametrize(("before", "name", "items", "arguments", "key"), cases(checked=True))
def test_nothing_is_written_before_all_is_checked(
    partition: Partition, before: State, name: str, items: tuple[Any, ...], arguments: dict[str, Any], key: str
) -> None:
    put_spoiled(partition, before, key)
    stored = everything(partition.store, without=())

    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        partition.run(name, *items, **arguments)

    assert everything(partition.store, without=()) == stored


@pytest.mark.parametrize(("before", "name", "items", "arguments", "key"), cases(checked=False))
def test_a_script_that_checks_its_keys_itself_writes_nothing_or_all(
    partition: Partition, before: State, name: str, items: tuple[Any, ...], arguments: dict[str, Any], key: str
) -> None:
    """Time and the places in line may have gone on: no fact of a job hangs on that."""
    partition.put(before)
    partition.run(name, *items, **arguments)
    spoil(partition, key)
    done = everything(partition.store, without=("clock", "sequence"))
    clear(partition)
    put_spoiled(partition, before, key)
    stored = everything(partition.store, without=("clock", "sequence"))

    was_refused = is_refused(partition, name, items, arguments)

    left = everything(partition.store, without=("clock", "sequence"))
    assert left == (stored if was_refused else done)


def test_each_key_that_a_script_checks_itself_stops_a_call_that_needs_it(partition: Partition) -> None:
    stopped = set()
    for before, name, items, arguments, key in (case.values for case in cases(checked=False)):
        put_spoiled(partition, before, key)
        if is_refused(partition, name, items, arguments):
            stopped.add((name, key))
        clear(partition)

    assert stopped == {(case.values[1], case.values[4]) for case in cases(checked=False)}


def test_a_line_of_the_wrong_type_in_which_jobs_would_stand_aside_leaves_all_where_they_are(
    partition: Partition,
) -> None:
    partition.put(
        {
            "bodies": {"a": body(type="t"), "b": body(type="u")},
            "ready": {"a": place(1), "b": place(2)},
            "control": {"paused_types": msgspec.msgpack.encode({"t": NOW + 1, "u": NOW + 1})},
        }
    )
    client: Any = partition.store.client
    client.set(f"{partition.keys.parked_of}u", "x")
    stored = everything(partition.store, without=("clock",))

    assert is_refused(partition, "job_lease", (), LEASE)
    assert everything(partition.store, without=("clock",)) == stored


def is_refused(partition: Partition, name: str, items: tuple[Any, ...], arguments: dict[str, Any]) -> bool:
    try:
        partition.run(name, *items, **arguments)
    except StoreRefused as refusal:
        return "WRONGTYPE" in str(refusal)
    return False


def put_spoiled(partition: Partition, before: State, key: str) -> None:
    partition.put({content: values for content, values in before.items() if content != key})
    spoil(partition, key)


def clear(partition: Partition) -> None:
    partition.store.client.delete(*everything(partition.store, without=()))


def spoil(partition: Partition, key: str) -> None:
    """Puts something there that no script expects."""
    client: Any = partition.store.client
    name = getattr(partition.keys, key)
    client.delete(name)
    if key in ("clock", "sequence"):
        client.rpush(name, "x")
    else:
        client.set(name, "x")


def test_no_script_is_forgotten() -> None:
    """Prune, reads and scripts of shared keys have one key to write, or none; others have tests of their own."""
    tested = {call[1] for call in CALLS.values()}

    assert {path.stem for path in LUA_DIR.glob("*.lua")} - tested == {
        "backlog_note",
        "bulk_cancel",
        "bulk_confirm",
        "bulk_open",
        "bulk_select",
        "bulk_settle",
        "bulk_take",
        "death_take",
        "death_told",
        "figures_count",
        "figures_read",
        "holder_drop",
        "holder_take",
        "job_fire",
        "job_prune",
        "job_read",
        "job_unstarted",
        "limit_give",
        "limit_start",
        "limit_take",
        "limit_tidy",
        "limit_turn",
        "limit_wait",
        "line_count",
        "line_page",
        "log_read",
        "mute_set",
        "node_enqueue",
        "node_news",
        "node_resubmit",
        "node_told",
        "pause_set",
        "pool_autoscale",
        "pool_create",
        "pool_set",
        "schedule_advance",
        "schedule_pulse",
        "schedule_put",
        "schedule_record",
        "schedule_remove",
        "schedule_take",
        "service_take",
        "type_set",
        "worker_beat",
        "worker_pause",
        "workflow_add",
        "workflow_cancel",
        "workflow_create",
        "workflow_cut",
        "workflow_decide",
        "workflow_due",
        "workflow_enlist",
        "workflow_look",
        "workflow_met",
        "workflow_name",
        "workflow_open",
        "workflow_pause",
        "workflow_redo",
        "workflow_revive",
        "workflow_settle",
        "workflow_signal",
        "workflow_skip",
        "workflow_step",
        "workflow_spread",
        "workflow_stopped",
        "workflow_unfold",
        "workflow_wait",
    }
