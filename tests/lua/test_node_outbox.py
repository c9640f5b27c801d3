"""What ends the job of a node, or makes it live again, leaves news for its run in the same step."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine.leases import _PruneKeys
from jobs.store.codec.records import decode_record, encode_run
from tests.support.partition import NOW, Partition, State, body, held, packed, place, record

NODES = {"a": "run-1\nextract"}
KEPT = {"attempts_kept": 25}
HELD: State = {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}
STARTED: State = {**HELD, "states": {"a": held(started_at=NOW - 1)}}
STOPPED: State = {**HELD, "states": {"a": held(cancel=1)}}
LAST_CRASH: State = {**STARTED, "bodies": {"a": body(max_crashes=1)}}
READY: State = {"bodies": {"a": body()}, "states": {"a": record("ready")}, "ready": {"a": place(1)}}
CORRUPT: State = {"bodies": {"a": b"?"}, "ready": {"a": place(1)}}
FAIL = ("a", "token", "t", NOW, "dead", 5, 0, "{}")

ENDS: dict[str, tuple[State, str, tuple[Any, ...], dict[str, Any], str]] = {
    "succeeded": (HELD, "job_complete", ("token", "t", "", "", 1, encode_run(NOW - 5, 1), "a"), KEPT, "succeeded"),
    "stopped at its end": (
        STOPPED,
        "job_complete",
        ("token", "t", "", "", 1, encode_run(1, 1), "a"),
        KEPT,
        "cancelled",
    ),
    "failed for good": (HELD, "job_fail", FAIL, KEPT, "dead"),
    "cancelled by its handler": (HELD, "job_fail", (*FAIL[:4], "cancelled", *FAIL[5:]), KEPT, "cancelled"),
    "crashed for good": (LAST_CRASH, "job_crash", ("a", "token", NOW), {"failure": "{}", **KEPT}, "dead"),
    "lost for good": (LAST_CRASH, "job_recover", (), {"limit": 9, "lease_ms": 9, "elapsed": "", **KEPT}, "dead"),
    "stopped and lost": (STOPPED, "job_recover", (), {"limit": 9, "lease_ms": 9, "elapsed": "", **KEPT}, "cancelled"),
    "stopped and handed back": (STOPPED, "job_release", ("a", "token"), {"charged": "", **KEPT}, "cancelled"),
    "stopped and parked": (STOPPED, "job_park", ("a", "token", "t"), {}, "cancelled"),
    "stopped and throttled": (STOPPED, "job_throttle", ("a", "token"), {}, "cancelled"),
    "cancelled while it waited": (READY, "job_cancel", (), {"id": "a", "only_waiting": ""}, "cancelled"),
    "corrupt": (
        CORRUPT,
        "job_lease",
        (),
        {"worker": "w", "seat": "w", "token": "n", "limit": 9, "lease_ms": 9, "bundle_from": 20, **KEPT},
        "dead",
    ),
}
GOES_ON: dict[str, tuple[State, str, tuple[Any, ...], dict[str, Any]]] = {
    "fails and is tried again": (HELD, "job_fail", (*FAIL[:4], "retry", *FAIL[5:]), KEPT),
    "is put off": (HELD, "job_fail", (*FAIL[:4], "snooze", *FAIL[5:]), KEPT),
    "crashes and runs again": (STARTED, "job_crash", ("a", "token", NOW), {"failure": "{}", **KEPT}),
    "is handed back": (HELD, "job_release", ("a", "token"), {"charged": "", **KEPT}),
    "is asked to stop": (HELD, "job_cancel", (), {"id": "a", "only_waiting": ""}),
    "is leased": (
        READY,
        "job_lease",
        (),
        {"worker": "w", "seat": "w", "token": "n", "limit": 9, "lease_ms": 9, "bundle_from": 20, **KEPT},
    ),
}


def outbox(partition: Partition) -> dict[str, str]:
    """Job → the state that its run is to hear of."""
    found: Any = partition.store.client.hgetall(partition.keys.outbox)
    return {job_id.decode(): decode_record(raw).state for job_id, raw in found.items()}


@pytest.mark.parametrize(("before", "name", "items", "arguments", "state"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("is_node", [True, False], ids=["a node", "no node"])
def test_the_run_of_a_node_is_to_hear_that_it_has(
    partition: Partition, before: State, name: str, items: Any, arguments: Any, state: str, is_node: bool
) -> None:
    partition.put({**before, "nodes": NODES if is_node else {"other": "run-1\nother"}})

    partition.run(name, *items, **arguments)

    assert outbox(partition) == ({"a": state} if is_node else {})


@pytest.mark.parametrize(("before", "name", "items", "arguments"), GOES_ON.values(), ids=GOES_ON)
def test_it_hears_nothing_when_a_node(
    partition: Partition, before: State, name: str, items: Any, arguments: Any
) -> None:
    partition.put({**before, "nodes": NODES})

    partition.run(name, *items, **arguments)

    assert outbox(partition) == {}


def test_a_resubmitted_node_is_a_node_again_and_its_run_hears_that_it_lives(partition: Partition) -> None:
    node = body(workflow_run="run-1", node="extract")
    dead = {key: record("dead") for key in "ab"}
    partition.put({"bodies": {"a": node, "b": body()}, "states": dead, "dead": {"a": 1, "b": 1}})

    assert partition.run("job_resubmit", "a", "b", payload="", ended_by="") == ["ok", "ok"]

    assert partition.store.client.hgetall(partition.keys.nodes) == {b"a": b"run-1\nextract"}
    assert outbox(partition) == {"a": "ready"}


def test_what_was_told_leaves_the_outbox_unless_it_has_changed_since(partition: Partition) -> None:
    dead, again = record("dead"), record("ready", resubmissions=1)
    partition.put({"nodes": {"a": "r\nx", "b": "r\ny"}, "outbox": {"a": dead, "b": again}})

    assert partition.run("node_told", "a", packed(dead), "b", packed(dead)) == 1

    assert outbox(partition) == {"b": "ready"}
    assert partition.store.client.hgetall(partition.keys.nodes) == {b"b": b"r\ny"}


def test_a_node_whose_run_has_not_heard_is_not_forgotten(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(), "b": body()},
            "states": {key: record("succeeded") for key in "ab"},
            "succeeded": {"a": 1, "b": 1},
            "nodes": NODES,
        }
    )

    keys = _PruneKeys(partition.keys, "succeeded")
    _, kept, *gone = partition.store.run("job_prune", keys, given_now=NOW, retention=0, limit=9, skip=0)

    assert (kept, gone) == (1, [b"b"])
