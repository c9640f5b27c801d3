"""The registry of workers, the overrides of types, and the numbers of the whole system."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs.conf import get_settings
from jobs.core.job import moment
from jobs.engine import Engine, TypeOverrides, WorkerInfo, WorkerNotFound
from jobs.engine import types as types_module
from jobs.exceptions import StoreUnavailable
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def info(worker_id: str, host: str = "h", **facts: Any) -> WorkerInfo:
    common: dict[str, Any] = {
        "hostname": "machine",
        "pid": 7,
        "pools": {"default": 10},
        "started_at_ms": 1_800_000_000_000,
        "state": "consuming",
    }
    return WorkerInfo(id=worker_id, host=host, **{**common, **facts})


# Workers ------------------------------------------------------------------------------------------------------------


def test_a_worker_is_alive_for_its_time_and_then_shown_as_gone(engine: Engine, clock: ManualClock) -> None:
    engine.workers.beat([info("h.1", running=3, rss=5, current=[{"id": "j"}])], ttl_ms=30_000)

    worker = engine.workers.get("h.1")
    assert (worker.alive, worker.running, worker.rss, worker.current) == (True, 3, 5, [{"id": "j"}])
    assert worker.last_seen_ms == clock.now_ms()
    assert worker.as_dict()["state"] == "consuming"

    clock.advance(30)
    worker = engine.workers.get("h.1")
    assert (worker.alive, worker.as_dict()["state"]) == (False, "gone")


def test_hosts_come_before_their_workers(engine: Engine) -> None:
    engine.workers.beat(
        [info("b.1", "b"), info("a.2", "a"), info("b", "b"), info("a", "a"), info("a.1", "a")], ttl_ms=1_000
    )

    assert [worker.id for worker in engine.workers.all()] == ["a", "a.1", "a.2", "b", "b.1"]
    assert [worker.is_host for worker in engine.workers.all()] == [True, False, False, True, False]


def test_a_worker_that_leaves_is_forgotten(engine: Engine) -> None:
    engine.workers.beat([info("a"), info("b")], ttl_ms=1_000)
    engine.workers.command("a", "stop")

    engine.workers.leave(["a"])
    engine.workers.leave([])

    assert [worker.id for worker in engine.workers.all()] == ["b"]
    assert engine.workers.beat([info("a")], ttl_ms=1_000) == {"a": []}


def test_a_release_is_dated_by_the_first_that_told_of_it(engine: Engine, clock: ManualClock) -> None:
    now = clock.now_ms()
    assert now is not None
    engine.workers.beat([info("a", version="1.0")], ttl_ms=1_000)
    clock.advance(3_600)
    engine.workers.beat([info("b", version="1.1")], ttl_ms=1_000)
    engine.workers.beat([info("a", version="1.0")], ttl_ms=1_000)

    assert engine.workers.releases(90) == [("1.0", moment(now)), ("1.1", moment(now + 3_600_000))]
    assert [release.name for release in engine.workers.releases(30)] == ["1.1"]


def test_a_command_reaches_its_worker(engine: Engine) -> None:
    engine.workers.beat([info("a"), info("b")], ttl_ms=1_000)

    engine.workers.command("b", "drain")

    assert engine.workers.beat([info("a"), info("b")], ttl_ms=1_000) == {"a": [], "b": ["drain"]}
    assert engine.workers.beat([info("b", state="draining")], ttl_ms=1_000) == {"b": []}
    assert engine.workers.beat([info("b", state="draining")], ttl_ms=1_000) == {"b": []}


def test_a_worker_that_is_not_there_is_not_found(engine: Engine) -> None:
    for ask in (engine.workers.get, lambda worker_id: engine.workers.command(worker_id, "stop")):
        with pytest.raises(WorkerNotFound, match="nobody"):
            ask("nobody")


def test_facts_that_cannot_be_read_are_left_out(engine: Engine, store: Store) -> None:
    engine.workers.beat([info("a")], ttl_ms=1_000)
    store.client.hset(f"{store.namespace}:{{workers}}:workers", "bad", b"\xc1")

    assert [worker.id for worker in engine.workers.all()] == ["a"]


# Types --------------------------------------------------------------------------------------------------------------


def test_an_override_is_seen_by_everybody_within_a_second(
    engine: Engine, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Engine(store, get_settings())
    assert other.types.get("t") == TypeOverrides()

    engine.types.set("t", {"pool": "fast", "priority": 5, "max_retries": 0, "timeout": 1.5, "enabled": False})
    expected = TypeOverrides(pool="fast", priority=5, max_retries=0, timeout=1.5, enabled=False)
    assert engine.types.get("t") == expected
    assert other.types.all() == {"t": expected}

    monkeypatch.setattr(types_module, "REFRESH_SECONDS", 0.0)
    assert other.types.get("t") == expected
    assert other.types.disabled() == {"t"}

    engine.types.clear("t")
    assert (other.types.get("t"), other.types.disabled()) == (TypeOverrides(), frozenset())


def test_a_set_replaces_all_that_was_set_before(engine: Engine) -> None:
    engine.types.set("t", {"priority": 5})
    engine.types.set("t", {"pool": "fast"})

    assert engine.types.get("t") == TypeOverrides(pool="fast")


@pytest.mark.parametrize("wrong", [{"priority": "high"}, {"enabled": "no"}, {"timeout": []}])
def test_a_value_of_the_wrong_kind_is_refused(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        engine.types.set("t", wrong)

    assert engine.types.all() == {}


def test_while_the_server_is_away_what_is_known_holds(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.types.set("t", {"enabled": False})
    assert engine.types.disabled() == {"t"}
    monkeypatch.setattr(types_module, "REFRESH_SECONDS", 0.0)

    def away(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(type(engine.types), "all", away)

    assert engine.types.disabled() == {"t"}
    fresh = types_module.Types(engine.store, engine.pauses)
    with pytest.raises(StoreUnavailable):
        fresh.disabled()


# Numbers ------------------------------------------------------------------------------------------------------------


def test_the_snapshot_shows_the_whole_system(steps: Steps) -> None:
    steps.enqueue_many(3)
    steps.bury(pool="default")
    Steps(steps.engine, "other").enqueue(delay_ms=5)
    steps.engine.workers.beat([info("h"), info("h.1"), info("h.2")], ttl_ms=30_000)

    snapshot = steps.engine.stats.snapshot()

    assert [pool.name for pool in snapshot.pools] == ["default", "other"]
    assert snapshot.states["ready"] + snapshot.states["dead"] == 4
    assert snapshot.states["scheduled"] == 1
    assert (snapshot.hosts, snapshot.workers) == (1, 2)


def test_the_version_changes_with_every_number_and_with_nothing_else(steps: Steps, clock: ManualClock) -> None:
    engine = steps.engine
    seen = [engine.stats.snapshot().version]

    def changed() -> bool:
        seen.append(engine.stats.snapshot().version)
        return seen[-1] != seen[-2]

    steps.enqueue_many(2)
    assert changed()
    assert not changed()
    clock.advance(1)
    assert not changed()
    job = steps.lease()
    assert changed()
    steps.fail(job, "retry")
    assert changed()
    steps.complete(steps.lease())
    assert changed()
    engine.pools.pause("default", by="me")
    assert changed()
    engine.pools.resume("default")
    engine.pools.configure("default", slots=3)
    assert changed()
    engine.workers.beat([info("h")], ttl_ms=30_000)
    assert changed()


def test_totals_are_kept_by_type(steps: Steps, clock: ManualClock) -> None:
    steps.enqueue_many(6, max_crashes=1)
    succeeded, failed, dead, crashed, lost, stopped = steps.lease_all()
    steps.complete(succeeded)
    steps.fail(failed, "retry", delay_ms=60_000)
    steps.fail(dead, "dead")
    steps.crash(crashed)
    steps.start(lost)
    steps.engine.jobs.cancel(stopped.id)
    steps.release(stopped)
    clock.advance(11)
    steps.engine.leases.recover(steps.route)
    steps.engine.jobs.resubmit(dead.id)

    assert steps.engine.stats.types() == {
        "t": {
            "enqueued": 6,
            "started": 6,
            "succeeded": 1,
            "failed": 2,
            "retried": 1,
            "dead": 3,
            "crashed": 2,
            "cancelled": 1,
            "resubmitted": 1,
        }
    }


def test_the_series_tells_what_happened_when(steps: Steps, clock: ManualClock) -> None:
    for _ in range(2):
        steps.enqueue_many(2)
        clock.advance(1)
        first, second = steps.lease_all()
        steps.start(first)
        steps.complete(first)
        steps.fail(second, "dead")
        clock.advance(19)

    series = steps.engine.stats.series("default")

    assert [entry["at"] for entry in series] == ["2027-01-15T08:00:00.000Z", "2027-01-15T08:00:20.000Z"]
    assert [(entry["started"], entry["succeeded"], entry["failed"], entry["dead"]) for entry in series] == [
        (2, 1, 1, 1),
        (2, 1, 1, 1),
    ]
    assert series[0]["wait_ms"] == 2_000
    assert steps.engine.stats.series() == series
    assert steps.engine.stats.series("nowhere") == []
