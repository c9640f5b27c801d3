"""Real Sentinels and a real cluster: small, but the jobs that pass through them are whole."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from jobs import job as register
from jobs.conf import get_settings
from jobs.core import workflow
from jobs.core.job import JobSpec, Route, Unique
from jobs.engine import Engine, WorkerInfo
from jobs.exceptions import DuplicateJob, StoreUnavailable
from jobs.runtime import controlling
from jobs.runtime.growing import grow
from jobs.services.deadlines import DeadlineService
from jobs.services.relay import RelayService
from jobs.store import embedded
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys, partition_keys
from tests.support.runs import Runs
from tests.support.steps import Steps
from tests.support.valkey import ValkeyServer, free_port
from tests.support.wait import eventually

SLOTS = 16_384


@register("cluster.node")
def node() -> None: ...


@pytest.fixture
def sentinel_url(make_valkey: Callable[..., ValkeyServer], tmp_path: Path) -> Iterator[tuple[str, ValkeyServer]]:
    """URL of a primary with one replica and one Sentinel, and the primary."""
    ports = free_port(), free_port(), free_port()
    primary = make_valkey(port=ports[0], appendonly="no", repl_diskless_sync_delay="0")
    make_valkey(port=ports[1], appendonly="no", replicaof=f"127.0.0.1 {ports[0]}")
    with redis.Redis(port=ports[1]) as replica:
        eventually(lambda: replica.info("replication")["master_link_status"] == "up")
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {ports[2]}\nbind 127.0.0.1\ndir {tmp_path}\nlogfile {tmp_path / 'sentinel.log'}\n"
        f"sentinel monitor main 127.0.0.1 {ports[0]} 1\n"
        "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n"
    )
    process = subprocess.Popen([embedded.binary(), str(config), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=ports[2]) as sentinel:
            eventually(lambda: knows_the_replica(sentinel))
        yield f"redis+sentinel://127.0.0.1:{ports[2]}/main/0", primary
    finally:
        process.kill()
        process.wait()


def knows_the_replica(sentinel: Any) -> bool:
    try:
        return bool(sentinel.sentinel_master("main")["num-slaves"] == 1)
    except redis.RedisError:
        return False


@pytest.fixture(scope="module")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of three nodes without replicas."""
    nodes = []
    for _ in range(3):
        options = {"appendonly": "no", "cluster_enabled": "yes", "cluster_port": str(free_port())}
        server = ValkeyServer(tmp_path_factory.mktemp("v"), port=free_port(), cluster_node_timeout="5000", **options)
        nodes.append((server.start(), options["cluster_port"]))
    try:
        clients: list[Any] = [server.client() for server, _ in nodes]
        for number, client in enumerate(clients):
            client.execute_command("CLUSTER ADDSLOTSRANGE", SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            server, bus = nodes[0]
            client.execute_command("CLUSTER MEET", "127.0.0.1", server.port, bus)
        for client in clients:
            eventually(lambda: client.cluster("INFO")["cluster_state"] == "ok", within=30)  # noqa: B023
            eventually(lambda: len(client.cluster("SLOTS")) == 3, within=30)  # noqa: B023
            client.close()
        yield "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server, _ in nodes)
    finally:
        for server, _ in nodes:
            server.kill()


@pytest.fixture
def on(namespace: str) -> Iterator[Callable[[str], Steps]]:
    """Makes producer and worker on a URL."""
    stores: list[Store] = []

    def make(url: str) -> Steps:
        stores.append(Store(url, namespace, patience=25))
        return Steps(Engine(stores[-1], get_settings()))

    yield make
    for store in stores:
        store.close()


def run_some_jobs(steps: Steps) -> None:
    """Plain, delayed, with a caller's id and with a unique key: through lease and completion."""
    engine = steps.engine
    plain = steps.enqueue_many(5)
    own = steps.enqueue(id="mine")
    [unique] = engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])
    [again] = engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])
    later = steps.enqueue(delay_ms=60_000)
    assert (again.id, again.existing) == (unique.id, True)
    with pytest.raises(DuplicateJob):
        steps.enqueue(id="mine")

    jobs = steps.lease_all()
    assert [job.id for job in jobs] == [*plain, own, unique.id]
    for job in jobs:
        steps.start(job)
        assert steps.complete(job, b"1") == "ok"

    assert steps.state(own) == "succeeded"
    assert engine.jobs.run_now(later).state == "ready"
    assert steps.complete(steps.lease()) == "ok"


def test_jobs_run_behind_a_sentinel(sentinel_url: tuple[str, ValkeyServer], on: Callable[[str], Steps]) -> None:
    run_some_jobs(on(sentinel_url[0]))


def test_a_failover_is_waited_for(sentinel_url: tuple[str, ValkeyServer], on: Callable[[str], Steps]) -> None:
    url, primary = sentinel_url
    steps = on(url)
    before = steps.enqueue()
    steps.engine.store.client.wait(1, 5_000)

    primary.kill()
    after = steps.enqueue()

    assert [job.id for job in steps.lease_all()] == [before, after]


def test_a_service_that_no_sentinel_knows_is_said_so(sentinel_url: tuple[str, ValkeyServer], namespace: str) -> None:
    store = Store(sentinel_url[0].replace("/main/", "/other/"), namespace, patience=0.2)

    with pytest.raises(StoreUnavailable, match="other"):
        store.ping()

    store.close()


def test_jobs_run_on_a_cluster(cluster_url: str, on: Callable[[str], Steps]) -> None:
    run_some_jobs(on(cluster_url))


def test_pools_spread_over_the_nodes_of_a_cluster(cluster_url: str, on: Callable[[str], Steps]) -> None:
    engine = on(cluster_url).engine
    lines = {f"pool-{number}": Steps(engine, f"pool-{number}") for number in range(12)}
    ids = {name: [line.enqueue() for _ in range(3)] for name, line in lines.items()}
    client: Any = engine.store.client
    nodes = {client.get_node_from_key(f"{engine.store.namespace}:{{{name}.1.0}}:ready").name for name in lines}
    routes = [line.route for line in lines.values()]
    assert len(nodes) == 3
    assert not engine.leases.none_waits(routes)

    assert sorted(job.id for job in engine.jobs.page().items) == sorted(itertools.chain(*ids.values()))
    assert {pool.name: pool.ready for pool in engine.pools.all()} == dict.fromkeys(lines, 3)
    for name, line in lines.items():
        for job in line.lease_all():
            assert job.id in ids[name]
            assert line.complete(job) == "ok"
    assert engine.leases.none_waits(routes)
    assert engine.leases.none_is_leased(routes)


def test_what_spans_all_nodes_works_on_a_cluster(cluster_url: str, on: Callable[[str], Steps]) -> None:
    engine = on(cluster_url).engine
    line = Steps(engine, "watched")
    line.enqueue()
    facts = WorkerInfo(id="w", host="w", hostname="m", pid=1, pools={"watched": 1}, started_at_ms=1, state="consuming")
    engine.workers.beat([facts], ttl_ms=30_000)

    snapshot = engine.stats.snapshot()
    assert (snapshot.states["ready"], snapshot.hosts) == (1, 1)
    assert engine.stats.types() == {"t": {"enqueued": 1}}
    assert [step["enqueued"] for step in engine.stats.series("watched")] == [1]
    assert "redis_version" in str(engine.store.describe()["info"])
    engine.pools.pause("watched", by="me")
    assert line.ask().paused
    engine.pools.resume("watched")
    assert engine.leases.wait_for_work([line.route], 1) == line.route
    for bucket in range(256):
        engine.upkeep.sweep_claims(bucket)
    engine.upkeep.prune_partition(line.route)
    engine.workers.leave(["w"])


def test_one_worker_waits_for_pools_on_several_nodes(cluster_url: str, on: Callable[[str], Steps]) -> None:
    engine = on(cluster_url).engine
    lines = [Steps(engine, f"pool-{number}") for number in range(4)]
    for line in lines:
        engine.topology.ensure(line.pool)
    routes = [line.route for line in lines]

    assert engine.leases.wait_for_work(routes, 0.05) is None
    for line in lines:
        line.enqueue()
        assert engine.leases.wait_for_work(routes, 3) == line.route


def spread_out(engine: Engine) -> dict[str, Any]:
    """Nodes of every kind and edge, each in another pool of several partitions."""
    inner = {"name": "inner", "nodes": [pooled("x"), pooled("y", on_complete=["x"])]}
    nodes: list[dict[str, Any]] = [
        pooled("list", payload={"day": {"$from": "run.payload.day"}}),
        pooled("page", each={"$from": "list.result"}, depends_on=["list"], payload={"n": {"$from": "each.item"}}),
        {"key": "sub", "workflow": inner, "depends_on": ["list"]},
        {"key": "shops", "workflow": inner, "each": [1, 2], "on_success": ["list"]},
        pooled("flaky", max_retries=2, delay=0.05, depends_on=["list"]),
        pooled("dead", depends_on=["list"]),
        pooled("alarm", on_failure=["dead"], payload={"why": {"$from": "dead.error.message"}}),
        pooled("never", depends_on=["dead"]),
        pooled("clean", on_complete=["never"], always=True),
        {"key": "paid", "signal": "paid", "depends_on": ["list"]},
        {"key": "late", "approval": "?", "timeout": 0.2, "on_timeout": "continue", "depends_on": ["list"]},
        pooled("some", depends_on=["page", "never", "paid", "dead"], join=2),
        pooled("first", depends_on=["page", "never"], join="any"),
        pooled("all", depends_on=["page", "sub", "shops", "flaky", "alarm", "paid", "late"], payload=RESULTS),
    ]
    pools = {f"{node['key']}-pool": '{"1": 3}' for node in [*nodes, *inner["nodes"]]}  # type: ignore[misc]
    engine.store.call(lambda client: client.hset(SettingKeys(engine.store.namespace).topology, mapping=pools))
    return {"name": "spread", "nodes": nodes}


RESULTS = {"pages": {"$from": "page.result"}, "paid": {"$from": "paid.result"}}


def pooled(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "type": "t", "pool": f"{key}-pool", **fields}


def run_workflow(engine: Engine, runs: Runs, run: str, seen: set[Route]) -> None:
    """Workers of all pools and the services of a host, until the run is over."""
    services = [RelayService(engine), DeadlineService(engine)]

    def go_on() -> bool:
        for leased in runs.lease():
            seen.add(leased.route)
            key = leased.extras["node"]
            if key == "flaky" and leased.attempt == 1:
                assert runs.fail(leased, "retry", delay_ms=50) == "retry_wait"
            else:
                runs.end(leased, "dead" if key == "dead" else "succeeded", result=[1, 2, 3] if key == "list" else key)
        for service in services:
            service.tick()
        return runs.facts(run).is_over

    eventually(go_on, within=30)


def test_a_workflow_runs_on_a_cluster_with_each_node_in_another_pool_and_partition(
    cluster_url: str, on: Callable[[str], Steps]
) -> None:
    engine = on(cluster_url).engine
    runs, seen, run = Runs(engine), set[Route](), "spread-1"
    definition = workflow.read(spread_out(engine))
    runs.relay.start(run, definition, {"payload": {"day": "monday"}})
    (first,) = runs.lease()
    runs.end(first, result=[1, 2, 3])
    controlling.pause(runs.relay, run, {"by": "ann", "at": "", "reason": ""})
    assert runs.lease() == []
    controlling.resume(runs.relay, run)
    growing = runs.engine.workflows.node(run, "page:0")
    assert growing is not None
    grow(runs.relay, run, "page:0", [{"key": "more", "type": "cluster.node", "pool": "more-pool"}])
    engine.run_control.signal(run, "paid", {"by": "ann"})
    runs.relay.pursue(run)

    run_workflow(engine, runs, run, seen)

    states = runs.states(run)
    ended = {key: state for key, state in states.items() if state != "succeeded"}
    assert ended == {"dead": "dead", "never": "skipped"}
    assert {"page:2", "page:more", "sub:y", "shops:1:x", "flaky", "first", "some"} <= states.keys()
    assert runs.facts(run).state == "succeeded"
    payload = engine.jobs.get(runs.nodes(run)["all"].job or "").payload
    assert payload == {"pages": ["page:0", "page:1", "page:2"], "paid": {"by": "ann"}}
    client: Any = engine.store.client
    where = [client.get_node_from_key(partition_keys(engine.store.namespace, route).ready) for route in seen]
    assert len({node.name for node in where}) == 3
    assert len({each.pool for each in seen}) > 10

    # A node that is dead is resubmitted by itself, then all is retried, cancelled in the midst of it, and forgotten.
    dead = runs.nodes(run)["dead"].job or ""
    engine.jobs.resubmit(dead)
    runs.relay.tell_of([dead])
    (again,) = runs.lease()
    runs.end(again)
    runs.run_all()
    assert runs.states(run)["never"] == "succeeded"
    controlling.retry(runs.relay, run, "list")
    (again,) = runs.lease()
    controlling.cancel(runs.relay, run, {"by": "ann", "at": "", "reason": ""})
    runs.end(again, "cancelled")
    runs.run_all()
    assert (runs.facts(run).state, runs.states(run)["clean"]) == ("cancelled", "succeeded")
    engine.workflows.remove(run)
    assert list(client.scan_iter(match=f"*{run}*")) == []


def test_scripts_that_the_nodes_forgot_are_sent_again(cluster_url: str, on: Callable[[str], Steps]) -> None:
    steps = on(cluster_url)
    steps.enqueue()
    steps.engine.store.client.script_flush()

    assert steps.complete(steps.lease()) == "ok"


def test_a_cluster_that_is_not_there_is_said_so(namespace: str) -> None:
    store = Store(f"redis+cluster://127.0.0.1:{free_port()}", namespace, patience=0.2)

    with pytest.raises(StoreUnavailable):
        store.ping()
    with pytest.raises(StoreUnavailable):
        store.wait_for_token(["x:wake"], 0.1)
