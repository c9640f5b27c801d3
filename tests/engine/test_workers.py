"""The registry of worker hosts and workers."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import Any

import pytest

from jobs.core.job import moment
from jobs.engine import EndedHost, Engine, News, WorkerInfo, WorkerNotFound, workers
from jobs.exceptions import OutcomeUnknown, WrongState
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


def test_hosts_come_before_their_workers(engine: Engine) -> None:
    for host in ("b", "a"):
        engine.workers.beat([info(f"{host}.2"), info(f"{host}.1"), info(host)], ttl_ms=TTL_MS)

    assert [worker.id for worker in engine.workers.all()] == ["a", "a.1", "a.2", "b", "b.1", "b.2"]


def test_a_release_is_dated_by_the_first_that_told_of_it(engine: Engine, clock: ManualClock) -> None:
    now = clock.now_ms()
    assert now is not None
    engine.workers.beat([info("a", version="1.0")], ttl_ms=TTL_MS)
    clock.advance(3_600)
    engine.workers.beat([info("b", version="1.1")], ttl_ms=TTL_MS)
    engine.workers.beat([info("a", version="1.0")], ttl_ms=TTL_MS)

    assert engine.workers.releases(90) == [("1.0", moment(now)), ("1.1", moment(now + 3_600_000))]
    assert [release.name for release in engine.workers.releases(30)] == ["1.1"]


def test_the_newest_release_is_that_of_a_moment_too(engine: Engine, clock: ManualClock) -> None:
    assert engine.workers.newest_release() is None
    engine.workers.beat([info("a", version="1.0")], ttl_ms=TTL_MS)
    before = moment(clock.now_ms() or 0)
    clock.advance(60)
    engine.workers.beat([info("b", version="1.1")], ttl_ms=TTL_MS)

    assert engine.workers.newest_release() == ("1.1", before + timedelta(seconds=60))
    assert engine.workers.newest_release(before + timedelta(seconds=59)) == ("1.0", before)
    assert engine.workers.newest_release(before - timedelta(seconds=1)) is None


def test_a_command_reaches_a_worker_however_often_the_reply_is_lost(engine: Engine) -> None:
    engine.workers.beat([info("h.1")], ttl_ms=TTL_MS)

    engine.workers.command("h.1", "drain")

    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS).commands == {"h.1": ["drain"]}
    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS).commands == {"h.1": ["drain"]}
    assert engine.workers.beat([info("h.1", state="draining")], ttl_ms=TTL_MS).commands == {"h.1": []}
    assert engine.workers.beat([info("h.1", state="draining")], ttl_ms=TTL_MS).commands == {"h.1": []}


@pytest.mark.parametrize("told", ["h", "h.1"])
def test_the_host_hears_at_once_that_it_or_one_of_its_workers_was_told_to_end(engine: Engine, told: str) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    engine.news.wait(0)

    engine.workers.command(told, "drain")

    assert engine.news.wait(1) == [("workers", "h")]


def test_it_is_left_and_paused_where_the_host_cannot_be_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(news: News, topic: str, about: str) -> None:
        raise OutcomeUnknown

    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    monkeypatch.setattr(News, "tell", fail)

    engine.workers.command("h.1", "drain")
    engine.workers.pause("h", by="ana", reason="", until=None)

    heard = engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    assert heard.commands["h.1"] == ["drain"]
    assert heard.pause is not None


def test_who_leaves_in_good_order_is_forgotten_at_once(engine: Engine) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)
    engine.workers.command("h.1", "stop")

    engine.workers.leave(["h.1"])
    engine.workers.leave([])

    assert [worker.id for worker in engine.workers.all()] == ["h"]
    assert engine.workers.beat([info("h.1")], ttl_ms=TTL_MS).commands == {"h.1": []}


def ended(host: str, at_ms: int, why: str = "stopped by SIGTERM") -> EndedHost:
    return EndedHost(id=host, hostname="box", pid=7, version="r1", started_at_ms=1, ended_at_ms=at_ms, why=why)


def test_of_hosts_that_have_ended_the_latest_are_told_for_an_hour_each_once(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "ENDED_KEPT", 2)
    for host in ("a", "b", "c"):
        clock.advance(1)
        for _ in range(2):  # the first answer was lost
            engine.workers.leave([host], ended(host, clock.now_ms() or 0))
    engine.store.client.zadd(HostKeys(engine.store.namespace).ended, {b"\xc1": (clock.now_ms() or 0) + 1})

    assert [host.id for host in engine.workers.ended()] == ["c", "b"]
    clock.advance(3_600)
    assert [host.id for host in engine.workers.ended()] == ["c"]
    clock.advance(0.002)
    assert engine.workers.ended() == []


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


def test_a_host_is_paused_by_somebody_for_a_while_and_its_workers_with_it(engine: Engine, clock: ManualClock) -> None:
    engine.workers.beat([info("h"), info("h.1"), info("other")], ttl_ms=TTL_MS)
    until = moment(clock.now_ms()) + timedelta(seconds=5)

    assert engine.workers.pause("h", by="ana", reason="disk is full", until=until) is None

    pause = engine.workers.get("h.1").paused
    assert pause is not None
    assert engine.workers.get("h.1").as_dict()["paused"] == {
        "by": "ana",
        "at": "2027-01-15T08:00:00.000Z",
        "reason": "disk is full",
        "until": "2027-01-15T08:00:05.000Z",
    }
    assert engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)[2:] == (pause, 5.0)
    assert engine.workers.get("other").paused is None
    clock.advance(5)
    heard = engine.workers.beat([info("h")], ttl_ms=TTL_MS)
    assert (heard.pause, heard.seconds, engine.workers.get("h").paused) == (None, inf, None)
    assert engine.workers.resume("h") is None, "it is over already"


def test_a_host_hears_at_once_that_it_is_paused_and_resumed_and_of_nothing_that_changes_nothing(engine: Engine) -> None:
    engine.workers.beat([info("h")], ttl_ms=TTL_MS)
    listener = News(engine.store)
    listener.wait(0)

    engine.workers.pause("h", by="ana")
    before = engine.workers.resume("h")
    engine.workers.resume("h")

    assert before is not None
    assert (before.by, before.until) == ("ana", None)
    assert [tuple(item) for item in listener.wait(1)] == [("workers", "h")] * 2


def test_only_a_whole_host_that_is_alive_can_be_paused(engine: Engine, clock: ManualClock) -> None:
    engine.workers.beat([info("h"), info("h.1")], ttl_ms=TTL_MS)

    with pytest.raises(WrongState, match=r"h\.1 is one worker of a host") as error:
        engine.workers.pause("h.1", by="ana")
    assert error.value.fix == "Pause its host: h"
    with pytest.raises(WorkerNotFound):
        engine.workers.pause("nobody", by="ana")
    with pytest.raises(WorkerNotFound):
        engine.workers.resume("nobody")
    clock.advance(TTL_MS / 1000)
    with pytest.raises(WorkerNotFound, match="alive"):
        engine.workers.pause("h", by="ana")


def test_a_pause_ends_with_its_host(engine: Engine) -> None:
    engine.workers.beat([info("h")], ttl_ms=TTL_MS)
    engine.workers.pause("h", by="ana")

    engine.workers.leave(["h"])

    assert engine.store.client.hgetall(HostKeys(engine.store.namespace).pauses) == {}
