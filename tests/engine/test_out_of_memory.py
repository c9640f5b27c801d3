"""A server that has reached its ``maxmemory``: it takes no new work, and what is there can be brought to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jobs.conf import get_settings
from jobs.core.job import JobSpec, LeasedJob, Route
from jobs.engine import Completion, Engine, Failure, WorkerInfo, new_token
from jobs.exceptions import StoreUnavailable
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.valkey import ValkeyServer

ROUTE = Route("default", 1, 0)
SPEC = JobSpec(type="t")


@pytest.fixture
def server(make_valkey: Callable[..., ValkeyServer]) -> ValkeyServer:
    return make_valkey(appendonly="no")


@pytest.fixture
def engine(server: ValkeyServer, namespace: str, clock: ManualClock) -> Iterator[Engine]:
    engine = Engine(Store(server.url, namespace), get_settings(), clock)
    yield engine
    engine.close()


def lease(engine: Engine, limit: int) -> list[LeasedJob]:
    return list(engine.leases.lease(ROUTE, worker="w", token=new_token(), limit=limit, lease_ms=10_000).jobs)


@pytest.mark.parametrize(
    "spec",
    [SPEC, JobSpec(type="t", id="mine"), JobSpec(type="t", delay_ms=1000)],
    ids=["ready", "with an id", "delayed"],
)
def test_new_work_is_refused_and_leaves_nothing(engine: Engine, server: ValkeyServer, spec: JobSpec) -> None:
    engine.jobs.enqueue(SPEC, [b"{}"])
    before = set(server.client().keys())
    server.client().config_set("maxmemory", "1")

    with pytest.raises(StoreUnavailable, match="out of memory"):
        engine.jobs.enqueue(spec, [b"{}"])

    assert set(server.client().keys()) == before


def test_what_is_there_goes_on_in_every_way(engine: Engine, server: ValkeyServer, clock: ManualClock) -> None:
    ids = [made.id for made in engine.jobs.enqueue(SPEC, [b"{}"] * 12)]
    [delayed] = engine.jobs.enqueue(JobSpec(type="t", delay_ms=60_000), [b"{}"])
    done, failed, dead, back, charged, crashed, running = lease(engine, 7)
    server.client().config_set("maxmemory", "1")

    def mine(job: LeasedJob) -> tuple[str, str]:
        return job.id, job.token

    engine.leases.start(ROUTE, [(*mine(crashed), crashed.leased_at)])
    assert engine.leases.renew(ROUTE, [mine(running)], 10_000).lost == []
    assert engine.leases.complete(ROUTE, [Completion(*mine(done), "t", done.leased_at, b'"result"')]) == ["ok"]
    assert engine.leases.fail(ROUTE, [Failure(*mine(failed), "t", failed.leased_at, "retry", 1000)]) == ["retry_wait"]
    assert engine.leases.fail(ROUTE, [Failure(*mine(dead), "t", dead.leased_at, "dead", error=b"{}")]) == ["dead"]
    assert engine.leases.release(ROUTE, [mine(back)]) == ["ready"]
    assert engine.leases.release(ROUTE, [mine(charged)], charged=True) == ["ready"]
    assert engine.leases.crash(ROUTE, [(*mine(crashed), crashed.leased_at)], reason="died") == ["ready"]
    assert engine.jobs.cancel(running.id).cancel_requested
    assert engine.jobs.cancel(ids[-1]).state == "cancelled"
    assert engine.jobs.run_now(delayed.id).state == "ready"
    assert engine.jobs.resubmit(dead.id).state == "ready"
    engine.jobs.discard(done.id)
    engine.workers.beat(
        [WorkerInfo(id="h", host="h", hostname="h", pid=1, pools={}, started_at_ms=1, state="consuming")], ttl_ms=10_000
    )

    clock.advance(2.0)
    assert engine.leases.promote(ROUTE, 100).promoted == 1
    clock.advance(20.0)
    assert engine.leases.recover(ROUTE).released == 1
    assert len(lease(engine, 100)) == 10
