"""Pools, workers, the whole system, and the server under it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from datetime import timezone as fixed_zone
from typing import Any

import pytest
from django.utils import timezone

from jobs import budget, enqueue, pools, scheduler, server, stats, types, workers
from jobs.conf import get_settings
from jobs.engine import Engine, PoolNotFound, WorkerInfo, WorkerNotFound
from jobs.exceptions import OptionInvalid, OutcomeUnknown, StoreUnavailable
from jobs.testing import drain
from tests.support.wait import soon

FAR_WEST = fixed_zone(timedelta(hours=-12))

CONTRACT_POOL = [
    "name",
    "paused",
    "slots",
    "slots_actual",
    "workers",
    "max_running",
    "max_pending",
    "ready",
    "scheduled",
    "retry_wait",
    "leased",
    "dead",
    "oldest_ready_age_seconds",
    "predicted_wait_seconds",
    "throughput_per_second",
]


def beat(engine: Engine, id: str, host: str) -> dict[str, list[str]]:
    info = WorkerInfo(id=id, host=host, hostname="h", pid=1, pools={"critical": 4}, started_at_ms=1, state="consuming")
    return engine.workers.beat([info], ttl_ms=60_000).commands


class TestPools:
    @pytest.fixture(autouse=True)
    def _pool(self) -> None:
        enqueue("mail.send", {"to": "Ann"})

    def test_they_are_listed_and_found_by_name(self) -> None:
        assert [pool.name for pool in pools.list()] == ["critical"]
        assert pools.get("critical").ready == 1
        with pytest.raises(PoolNotFound):
            pools.get("nobody")

    def test_a_pause_is_shown_and_holds_until_it_is_ended(self) -> None:
        paused = pools.pause("critical", by="ann", reason="deploy").paused

        assert paused is not None
        assert (paused.by, paused.reason, paused.until) == ("ann", "deploy", None)
        assert drain() == []
        assert pools.resume("critical").paused is None
        assert len(drain()) == 1

    def test_a_pause_may_have_an_end(self) -> None:
        until = timezone.now() + timedelta(hours=1)

        paused = pools.pause("critical", until=until).paused

        assert paused is not None
        assert paused.until is not None

    @pytest.mark.parametrize("over", [timedelta(0), timedelta(hours=-1), datetime(2001, 1, 1, tzinfo=FAR_WEST)])
    def test_a_pause_that_would_be_over_is_refused_and_takes_the_place_of_none(self, over: Any) -> None:
        pools.pause("critical", by="ann", reason="deploy")

        with pytest.raises(OptionInvalid, match="is over already"):
            pools.pause("critical", by="ben", until=over)

        paused = pools.get("critical").paused
        assert paused is not None
        assert paused.by == "ann"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"until": datetime(2100, 1, 1)},
            {"until": 3600},
            {"until": timedelta.max},
            {"until": datetime.max.replace(tzinfo=FAR_WEST)},
            {"by": ""},
            {"by": "a\nb"},
            {"reason": "\ud800"},
        ],
    )
    def test_a_pause_that_cannot_be_shown_or_timed_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(OptionInvalid):
            pools.pause("critical", **wrong)
        assert pools.get("critical").paused is None

    @pytest.mark.django_db(transaction=True)
    def test_scaling_sets_the_slots_for_good(self) -> None:
        assert pools.scale("critical", 7).slots == 7
        assert pools.scale("brand-new", 2).name == "brand-new"

    @pytest.mark.parametrize(("name", "slots"), [("critical", -1), ("critical", 1.5), ("a b", 3)])
    def test_impossible_sizes_are_refused(self, name: str, slots: Any) -> None:
        with pytest.raises(OptionInvalid):
            pools.scale(name, slots)

    async def test_they_have_async_twins(self) -> None:
        assert [pool.name for pool in await pools.alist()] == ["critical"]
        assert (await pools.apause("critical")).paused is not None
        assert (await pools.aresume("critical")).paused is None


class TestWorkers:
    @pytest.fixture(autouse=True)
    def _workers(self, engine: Engine) -> None:
        beat(engine, "h1", "h1")
        beat(engine, "h1.1", "h1")

    def test_a_host_is_listed_before_its_workers(self) -> None:
        assert [worker.id for worker in workers.list()] == ["h1", "h1.1"]
        assert workers.get("h1.1").alive
        with pytest.raises(WorkerNotFound):
            workers.get("nobody")

    def test_they_can_be_told_to_go(self, engine: Engine) -> None:
        workers.drain("h1.1")
        workers.stop("h1")

        assert beat(engine, "h1.1", "h1") == {"h1.1": ["drain"]}
        assert beat(engine, "h1", "h1") == {"h1": ["stop"]}
        with pytest.raises(WorkerNotFound):
            workers.stop("nobody")


class TestSystem:
    def test_the_status_is_that_of_the_contract(self, engine: Engine) -> None:
        enqueue("mail.send", {"to": "Ann"})
        enqueue("mail.send", {"to": "Ann"}, delay=60)
        beat(engine, "h1", "h1")
        beat(engine, "h1.1", "h1")

        status = scheduler.status()

        assert list(status) == ["paused", "hosts", "workers", "server_time", "states", "pools"]
        assert (status["paused"], status["hosts"], status["workers"]) == (None, 1, 1)
        assert status["server_time"].endswith("Z")
        assert (status["states"]["ready"], status["states"]["scheduled"], status["states"]["dead"]) == (1, 1, 0)
        assert list(status["pools"][0]) == CONTRACT_POOL

    def test_counters_grow_with_the_work(self) -> None:
        """AC-11: five successes are counted as five."""
        for _ in range(5):
            enqueue("mail.send", {"to": "Ann"})
        drain()

        assert stats.types()["mail.send"]["succeeded"] == 5
        assert sum(bucket["succeeded"] for bucket in stats.series(pool="critical")) == 5

    def test_the_version_of_a_snapshot_changes_with_its_numbers(self) -> None:
        before = stats.snapshot().version
        assert stats.snapshot().version == before

        enqueue("mail.send", {"to": "Ann"})

        assert stats.snapshot().version != before

    def test_overrides_can_be_read(self, engine: Engine) -> None:
        engine.types.set("mail.send", {"pool": "slow", "enabled": False})

        assert types.get("mail.send").pool == "slow"
        assert types.disabled() == {"mail.send"}

    async def test_it_has_async_twins(self) -> None:
        assert (await scheduler.astatus())["hosts"] == 0
        assert (await stats.asnapshot()).workers == 0


class TestServer:
    def test_it_says_what_it_is(self) -> None:
        facts = server()

        assert "redis_version" in facts["info"]
        assert abs(facts["time_ms"] / 1000 - time.time()) < 60
        assert "save" in facts

    def test_a_budget_ends_a_read_of_a_hung_server(self, private_valkey: Any, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
        assert get_settings().redis_url == private_valkey.url
        scheduler.status()
        private_valkey.stop()
        begun = time.monotonic()
        try:
            with pytest.raises((StoreUnavailable, OutcomeUnknown)), budget(0.5):
                scheduler.status()
        finally:
            private_valkey.cont()

        assert time.monotonic() - begun < soon(3)
