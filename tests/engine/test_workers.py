"""The registry of worker hosts and workers."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine import Engine, WorkerInfo, WorkerNotFound
from jobs.store.keys import HostKeys
from tests.support.clock import ManualClock

TTL_MS = 10_000


def info(worker_id: str, **facts: Any) -> WorkerInfo:
    known = {"hostname": "box", "pid": 7, "pools": {"default": 3}, "started_at_ms": 1, "state": "consuming"}
    return WorkerInfo(id=worker_id, host=worker_id.partition(".")[0], **{**known, **facts})


def test_a_worker_is_alive_while_it_beats(engine: Engine, clock: ManualClock) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    beaten_at = clock.now_ms()

    clock.advance(9.9)
    assert [(worker.id, worker.alive, worker.is_host) for worker in engine.workers.all()] == [
        ("h", True, True),
        ("h.1", True, False),
    ]
    assert engine.workers.get("h.1").last_seen_ms == beaten_at

    clock.advance(0.1)
    assert [worker.alive for worker in engine.workers.all()] == [False, False]
    assert engine.workers.get("h").as_dict()["state"] == "gone"


def test_a_command_reaches_a_worker_however_often_the_reply_is_lost(engine: Engine) -> None:
    engine.workers.beat([info("h.1")], ttl_ms=TTL_MS)

    engine.workers.command("h.1", "drain")

    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS) == {"h.1": ["drain"]}
    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS) == {"h.1": ["drain"]}
    assert engine.workers.beat([info("h.1", state="draining")], ttl_ms=TTL_MS) == {"h.1": []}
    assert engine.workers.beat([info("h.1", state="draining")], ttl_ms=TTL_MS) == {"h.1": []}


def test_who_leaves_in_good_order_is_forgotten_at_once(engine: Engine) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    engine.workers.command("h.1", "stop")

    engine.workers.leave(["h.1"])
    engine.workers.leave([])

    assert [worker.id for worker in engine.workers.all()] == ["h"]
    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS) == {"h.1": []}


def test_a_worker_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(WorkerNotFound, match="'nobody'"):
        engine.workers.get("nobody")
    with pytest.raises(WorkerNotFound):
        engine.workers.command("nobody", "stop")


def test_facts_that_cannot_be_read_hide_one_worker_and_no_other(engine: Engine) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    engine.store.client.hset(HostKeys(engine.store.namespace).workers, "h.1", b"\xc1")

    assert [worker.id for worker in engine.workers.all()] == ["h"]


def test_what_a_worker_runs_is_told_with_its_age_and_itself_with_its_last_sign_of_life(
    engine: Engine, clock: ManualClock
) -> None:
    current = [{"id": "a", "started_at": "2027-01-15T08:00:00.000Z"}, {"id": "b"}]
    engine.workers.beat([info("h.1", current=current, cpu=0.5, cpu_seconds=12.0, state="draining")], ttl_ms=TTL_MS)
    clock.advance(4)

    told = engine.workers.get("h.1").as_dict()

    assert (told["heartbeat_age_seconds"], told["draining"], told["cpu"], told["cpu_seconds"]) == (4.0, True, 0.5, 12.0)
    assert [job["age_seconds"] for job in told["current"]] == [4.0, None]
