"""``python -m benchmarks limits``: what limits cost, in processor time, beside the same jobs without them.

Processor time of the server and of the whole worker host, not seconds on a clock: it is the same on a busy machine.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from benchmarks.hosts import Host, project_environment, wait_until
from benchmarks.report import Bar, Figure, conditions, progress, show
from benchmarks.server import BenchmarkServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.engine import Engine

PACKAGES = ("Django", "redis", "hiredis", "msgspec")
KEYS = 100_000


@dataclass(frozen=True)
class Size:
    rounds: int
    jobs: int
    keys: int


FULL = Size(rounds=5, jobs=20_000, keys=KEYS)
SHORT = Size(rounds=3, jobs=6_000, keys=KEYS)


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Measures and prints everything; true when every bar holds."""
    size = SHORT if short else FULL
    with BenchmarkServer(persistent=persistent) as server:
        os.environ.update(project_environment(server.url, server.folder))
        import django

        django.setup()
        figures = _measure(server, size)
        facts = conditions(server.client, PACKAGES)
        facts["rounds"] = f"{size.rounds} of {size.jobs:,} no-op jobs, medians; both kinds in turn"
        return show("Limits beside none", facts, figures, reference="without", as_json=as_json)


def _measure(server: BenchmarkServer, size: Size) -> list[Figure]:
    from benchmarks.workload.jobs import POOL, limited, nothing, rated
    from jobs.engine import get_engine

    engine = get_engine()
    engine.topology.ensure(POOL)
    at_most = Bar(1.2, at_most=True)
    both = Figure("places of one key: server and host", "µs/job", at_most)
    alone = Figure("places of one key: server alone", "µs/job")
    rate = Figure("starts of one key: server and host", "µs/job", at_most)
    keys = Figure(f"starts of {size.keys:,} keys ÷ of one: server and host", "µs/job", Bar(1.3, at_most=True))
    keys_alone = Figure(f"starts of {size.keys:,} keys ÷ of one: server alone", "µs/job", Bar(1.3, at_most=True))
    _use_every_key(engine, size.keys)
    with Host(server.url, server.folder, "--pool", POOL, "--concurrency", "10") as host:
        drain = _Drain(server, host, engine)
        drain.cost([nothing.name] * 1_000, [None] * 1_000)  # the first jobs start threads
        for turn in range(size.rounds):
            progress(f"round {turn + 1}")
            without = drain.cost([nothing.name] * size.jobs, [None] * size.jobs)
            places = drain.cost([limited.name] * size.jobs, ["one"] * size.jobs)
            one = drain.cost([rated.name] * size.jobs, ["one"] * size.jobs)
            spread = [f"key{(turn * size.jobs + number) * 7 % size.keys}" for number in range(size.jobs)]
            same = drain.cost([rated.name] * size.jobs, ["one"] * size.jobs, one_by_one=True)
            many = drain.cost([rated.name] * size.jobs, spread, one_by_one=True)
            both.add(places.all_us, without.all_us)
            alone.add(places.server_us, without.server_us)
            rate.add(one.all_us, without.all_us)
            keys.add(many.all_us, same.all_us)
            keys_alone.add(many.server_us, same.server_us)
    return [both, alone, rate, keys, keys_alone]


@dataclass(frozen=True)
class _Cost:
    """Microseconds of processor time for one job, from its lease to its end."""

    server_us: float
    all_us: float


class _Drain:
    def __init__(self, server: BenchmarkServer, host: Host, engine: Engine) -> None:
        self._server = server
        self._host = host
        self._engine = engine

    def cost(self, types: Sequence[str], keys: Sequence[str | None], *, one_by_one: bool = False) -> _Cost:
        """All jobs stand in line before the first is leased. ``one_by_one``: each was enqueued by a call of its own, as
        jobs with different keys are: what is leased from many calls is read more slowly than what came with one."""
        from benchmarks.workload.jobs import POOL
        from jobs.core.job import JobSpec
        from jobs.core.pause import Scope

        scope = Scope("pool", POOL)
        self._engine.pauses.pause(scope, by="benchmark")
        goal = self._succeeded() + len(types)
        wanted = list(zip(types, keys, strict=True))
        for (name, key), count in [(pair, 1) for pair in wanted] if one_by_one else Counter(wanted).items():
            self._engine.jobs.enqueue(JobSpec(type=name, pool=POOL, concurrency_key=key, rate_key=key), [b"{}"] * count)
        server, host = self._server.cpu_seconds(), self._host.cpu_seconds()
        self._engine.pauses.resume(scope)
        wait_until(lambda: self._succeeded() >= goal, 300, every=0.2)
        time.sleep(0.3)  # the last places are given back
        server = self._server.cpu_seconds() - server
        host = self._host.cpu_seconds() - host
        return _Cost(server / len(types) * 1e6, (server + host) / len(types) * 1e6)

    def _succeeded(self) -> int:
        from benchmarks.workload.jobs import POOL
        from jobs.store.keys import partition_keys

        (route,) = self._engine.topology.partitions(POOL)
        keys = partition_keys(self._engine.store.namespace, route)
        return int(self._engine.store.client.zcard(keys.succeeded))


def _use_every_key(engine: Engine, count: int) -> None:
    """Each rate key has had a start in this period."""
    from benchmarks.workload.jobs import rated
    from jobs.store.keys import LimitKeys

    limits = rated.limits
    assert limits is not None
    assert limits.rate is not None
    for start in range(0, count, 1000):
        keys = [f"key{number}" for number in range(start, start + 1000)]
        engine.store.run(
            "limit_start",
            LimitKeys(engine.store.namespace, limits.type),
            given_now="",
            starts=limits.rate.starts,
            period=limits.rate.period_ms,
            most=1000,
            wanted=msgspec.msgpack.encode((keys, [1] * len(keys))),
        )
