"""``python -m benchmarks engine``: our engine beside the ceiling probe, round by round on one server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import probe
from benchmarks.hosts import Host, project_environment, wait_until
from benchmarks.report import Bar, Figure, conditions, progress, show
from benchmarks.server import BenchmarkServer
from jobs.runtime.process import tied

if TYPE_CHECKING:
    from jobs.core.job import JobSpec, Route
    from jobs.engine import Engine

SLOTS = 10
SETTLED_SECONDS = 15.0
"""A host has started by then, and its services have looked around once."""
PACKAGES = ("Django", "redis", "hiredis", "msgspec")


@dataclass(frozen=True)
class Size:
    """How much of everything. The short form shows that the benchmark works; its figures are rough."""

    rounds: int
    one: int  # jobs enqueued one by one
    many: int  # jobs enqueued in one call
    drain: int
    stamps: int  # jobs of the latency measurement
    idle_seconds: float
    pending: int  # delayed jobs in the large backlog
    slice: int  # jobs promoted and leased beside it


FULL = Size(
    rounds=5, one=2_000, many=50_000, drain=50_000, stamps=1_000, idle_seconds=20, pending=1_000_000, slice=20_000
)
SHORT = Size(rounds=2, one=300, many=5_000, drain=10_000, stamps=200, idle_seconds=3, pending=50_000, slice=2_000)


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Measures and prints everything; true when every bar holds."""
    size = SHORT if short else FULL
    with BenchmarkServer(persistent=persistent) as server:
        os.environ.update(project_environment(server.url, server.folder))
        import django

        django.setup()
        figures = [
            *_enqueue(server, size),
            *_drain_and_idle(server, size),
            *_backlog(server, size),
        ]
        facts = conditions(server.client, PACKAGES)
        facts["rounds"] = f"{size.rounds}, medians; ours and the probe in turn"
        facts["worker"] = f"runworkers, 1 process, {SLOTS} slots, sync no-op jobs"
        return show("Engine beside the ceiling probe", facts, figures, reference="probe", as_json=as_json)


def _enqueue(server: BenchmarkServer, size: Size) -> list[Figure]:
    """Through the public API, payload check and all, against raw commands."""
    from benchmarks.workload.jobs import stamp

    one = Figure("enqueue one", "jobs/s")
    many = Figure("enqueue many", "jobs/s", Bar(0.4))
    payloads = [{"sent_ns": number} for number in range(size.many)]
    raw = [b'{"sent_ns": %d}' % number for number in range(size.many)]
    for _ in range(size.rounds):
        progress("enqueue")
        began = time.perf_counter()
        for number in range(size.one):
            probe.enqueue_one(server.client, number, b'{"sent_ns": 1}')
        bare = size.one / (time.perf_counter() - began)
        began = time.perf_counter()
        for number in range(size.one):
            stamp.enqueue(sent_ns=number)
        one.add(size.one / (time.perf_counter() - began), bare)

        began = time.perf_counter()
        probe.enqueue_many(server.client, 10_000_000, raw)
        bare = size.many / (time.perf_counter() - began)
        began = time.perf_counter()
        stamp.enqueue_many(payloads)
        many.add(size.many / (time.perf_counter() - began), bare)
        server.client.flushall()
    return [one, many]


def _drain_and_idle(server: BenchmarkServer, size: Size) -> list[Figure]:
    from benchmarks.workload.jobs import POOL, nothing, stamp
    from jobs.engine import get_engine, reset_engine

    reset_engine()
    engine = get_engine()
    drain = Figure("drain, 1 process, 10 slots", "jobs/s", Bar(0.35))
    after = Figure("enqueue to start, right after the drain", "ms", Bar(20, of="value", at_most=True))
    engine.topology.ensure(POOL)
    prober = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.probe", server.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=tied(),
    )
    assert prober.stdin is not None
    assert prober.stdout is not None
    with Host(server.url, server.folder, "--pool", POOL, "--concurrency", str(SLOTS)) as host:
        nothing.enqueue_many([{}] * 1000)  # the first jobs start threads and learn how short they are
        wait_until(lambda: _succeeded(engine, POOL) == 1000, 60)
        latency = _latency(server, stamp, size)  # first: after a drain the machine writes hundreds of megabytes
        for _ in range(size.rounds):
            progress("drain")
            probe.enqueue_many(server.client, 0, [b"{}"] * size.drain)
            prober.stdin.write(f"{size.drain}\n")
            prober.stdin.flush()
            bare = size.drain / float(prober.stdout.readline())

            engine.pools.pause(POOL, by="benchmark")
            nothing.enqueue_many([{}] * size.drain)
            goal = _succeeded(engine, POOL) + size.drain
            began = time.perf_counter()
            engine.pools.resume(POOL)
            wait_until(lambda: _succeeded(engine, POOL) >= goal, 300, every=0.01)  # noqa: B023
            drain.add(size.drain / (time.perf_counter() - began), bare)
            after.add(_late_ms(lambda: stamp.enqueue(sent_ns=time.monotonic_ns())))
        prober.stdin.close()
        prober.wait()
        prober.stdout.close()
        memory = Figure("idle worker, resident memory", "MB", Bar(90, of="value", at_most=True))
        memory.add(host.worker_rss_bytes() / 1e6)
    return [drain, after, *latency, *_idle(server, size), memory]


def _succeeded(engine: Engine, pool: str) -> int:
    from jobs.store.keys import partition_keys

    (route,) = engine.topology.partitions(pool)
    keys = partition_keys(engine.store.namespace, route)
    return int(engine.store.client.zcard(keys.succeeded))


def _late_ms(enqueue: Callable[[], object]) -> float:
    """How long one stamped job waited for its handler."""
    stamps = Path(os.environ["BENCHMARK_STAMPS"])
    stamps.unlink(missing_ok=True)
    enqueue()
    wait_until(lambda: stamps.exists() and stamps.stat().st_size, 30, every=0.001)
    return int(stamps.read_bytes()) / 1e6


def _latency(server: BenchmarkServer, stamp: object, size: Size) -> list[Figure]:
    """From before the enqueue call to the first line of the handler, on an idle worker, one job at a time: each sent
    when the one before has run, and each out of a sleep. Beside them the bare minimum in the same way, and how much
    that sleep slows the very same lines of Python down. Where that bare minimum alone takes more than 1 ms after a
    sleep, as on virtual machines, 1 ms says nothing of us: there the bar is a multiple of it."""
    progress("latency")
    loop = _starts(server, stamp, size, "in a loop", Bar(1.0, of="value", at_most=True), lambda _: None)
    slept = _starts(server, stamp, size, "after a sleep", Bar(2.0, at_most=True), _nap)
    return [*loop, *slept, _coldness(size)]


def _nap(number: int) -> None:
    """5 to 11 ms: longer than a cache stays warm, and never in step with anything."""
    time.sleep(0.005 + number % 7 / 1000)


def _starts(
    server: BenchmarkServer, stamp: object, size: Size, way: str, median_bar: Bar, pause: Callable[[int], object]
) -> list[Figure]:
    """The bars are for an idle worker on an idle machine; ``pause`` comes before each job and each bare start."""
    stamps = Path(os.environ["BENCHMARK_STAMPS"])
    stamps.unlink(missing_ok=True)
    bare: list[float] = []
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.probe", server.url, "start"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=tied(),
    ) as prober:
        assert prober.stdout is not None
        for number in range(size.stamps):
            pause(number)
            stamp.enqueue(sent_ns=time.monotonic_ns())  # type: ignore[attr-defined]
            wait_until(lambda: stamps.exists() and stamps.read_bytes().count(b"\n") > number, 10, every=0.0002)  # noqa: B023
            pause(number)
            server.client.rpush(probe.WAKE, time.monotonic_ns())
            bare.append(int(prober.stdout.readline()) / 1e6)
        prober.kill()
    late = sorted(int(line) / 1e6 for line in stamps.read_bytes().splitlines())
    bare.sort()
    figures = []
    for name, part, bar in (("p50", 0.5, median_bar), ("p99", 0.99, Bar(5.0, of="value", at_most=True))):
        figure = Figure(f"enqueue to start, idle, {way}, {name}", "ms", bar)
        figure.add(late[int(len(late) * part)], bare[int(len(bare) * part)])
        figures.append(figure)
    return figures


def _coldness(size: Size) -> Figure:
    """What a sleep costs on this machine, whatever runs after it: caches that others have used meanwhile."""
    figure = Figure("the same lines, out of that sleep ÷ at once", "µs")
    for number in range(size.stamps // 5):
        _nap(number)
        figure.add(_lines_us(), _lines_us())
    return figure


def _lines_us() -> float:
    began = time.perf_counter()
    for number in range(200):
        str(number)
    return (time.perf_counter() - began) * 1e6


def _idle(server: BenchmarkServer, size: Size) -> list[Figure]:
    """What a host costs while there is nothing to do, with all of its services."""
    from django.core.management import call_command

    from benchmarks.workload.jobs import POOL

    progress("idle")
    call_command("migrate", verbosity=0)
    commands = Figure("idle host, server commands", "per s", Bar(2.0, of="value", at_most=True))
    cpu = Figure("idle host, processor", "% of a core", Bar(1.0, of="value", at_most=True))
    with Host(server.url, server.folder, "--pool", POOL, schedules=True) as host:
        time.sleep(SETTLED_SECONDS)
        cpu_before = host.cpu_seconds()
        commands.add(_commands(server, size.idle_seconds) / size.idle_seconds)
        cpu.add((host.cpu_seconds() - cpu_before) / size.idle_seconds * 100)
    return [commands, cpu]


def _commands(server: BenchmarkServer, seconds: float) -> int:
    """Commands that clients send in the next ``seconds``, as MONITOR shows them, without those inside of scripts."""
    seen = b""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as monitor:
        monitor.connect(str(server.socket))
        monitor.sendall(b"MONITOR\r\n")
        while (left := deadline - time.monotonic()) > 0:
            monitor.settimeout(left)
            with suppress(TimeoutError):
                seen += monitor.recv(65536)
    lines = seen.splitlines()[1:]  # the first says that it begins
    return sum(b" lua]" not in line for line in lines)


class StandingClock:
    """Time for the backlog: delayed jobs become due when the benchmark says so."""

    def __init__(self, now_ms: int) -> None:
        self.at = now_ms

    def now_ms(self) -> int:
        return self.at


def _backlog(server: BenchmarkServer, size: Size) -> list[Figure]:
    """Memory of delayed jobs, and whether promotion and lease get slower beside a large number of them."""
    from jobs.core.job import JobSpec

    progress(f"{size.pending:,} pending jobs")
    server.client.flushall()
    spec = JobSpec(type="benchmark.nothing", pool="benchmark", delay_ms=86_400_000)
    memory = Figure("memory of a delayed job of 100 bytes", "bytes", Bar(400, of="value", at_most=True))
    before = int(server.client.info("memory")["used_memory"])
    large = _Backlog(server, "large")
    payload = b'{"text": "' + b"x" * 88 + b'"}'
    assert len(payload) == 100
    for _ in range(0, size.pending, 10_000):
        large.engine.jobs.enqueue(spec, [payload] * 10_000)
    memory.add((int(server.client.info("memory")["used_memory"]) - before) / size.pending)
    small = _Backlog(server, "small")
    small.engine.jobs.enqueue(spec, [payload] * 1_000)

    name = f"{size.pending:,} pending ÷ with 1,000"
    promote = Figure(f"promote, with {name}", "µs/job", Bar(1.3, at_most=True))
    lease = Figure(f"lease and complete, with {name}", "µs/job", Bar(1.3, at_most=True))
    for _ in range(size.rounds):
        for backlog in (small, large):
            backlog.measure(spec, payload, size.slice)
        promote.add(large.promote_us, small.promote_us)
        lease.add(large.lease_us, small.lease_us)
    return [memory, promote, lease]


class _Backlog:
    """An engine of its own over a namespace of its own on the same server."""

    def __init__(self, server: BenchmarkServer, namespace: str) -> None:
        from jobs.conf import Settings
        from jobs.engine import Engine
        from jobs.store.connection import Store

        self.clock = StandingClock(int(time.time() * 1000))
        self.engine = Engine(Store(server.url, namespace=namespace), Settings(), self.clock)
        self.promote_us = self.lease_us = 0.0

    def measure(self, spec: JobSpec, payload: bytes, count: int) -> None:
        """``count`` more jobs become due in a minute; then they are promoted, leased by the hundred and completed."""
        import msgspec

        from jobs.engine import Completion, new_token

        soon = msgspec.structs.replace(spec, delay_ms=60_000)
        self.engine.jobs.enqueue(soon, [payload] * count)
        self.clock.at += 61_000
        route: Route = self.engine.topology.route_for(spec.pool)
        began = time.perf_counter()
        while self.engine.leases.promote(route, 1000).promoted:
            pass
        self.promote_us = (time.perf_counter() - began) / count * 1e6
        began = time.perf_counter()
        while True:
            token = new_token()
            jobs = self.engine.leases.lease(route, worker="bench", token=token, limit=100, lease_ms=60_000).jobs
            if not jobs:
                break
            self.engine.leases.complete(route, [Completion(job.id, token, job.type, job.leased_at) for job in jobs])
        self.lease_us = (time.perf_counter() - began) / count * 1e6
