"""``python -m benchmarks peers``: draining no-op jobs with us, Dramatiq and Taskiq, in turn, on one server.

Each runs its own worker command as its documentation says: one process, ten threads (Dramatiq), a hundred async tasks
(Taskiq). They are installed into an environment of their own, which is never a part of the project. Taskiq is measured
with both of its Redis brokers: the list, which forgets a job the moment it hands it out, and the stream, which like us
and Dramatiq keeps it until it is acknowledged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks.hosts import ROOT, Host, project_environment, wait_until
from benchmarks.report import Bar, Figure, conditions, progress, show
from benchmarks.server import BenchmarkServer
from jobs.runtime.process import tied

REQUIREMENTS = ("dramatiq[redis]==2.2.*", "taskiq==0.13.*", "taskiq-redis==1.2.*", "hiredis==3.5.*")
PACKAGES = ("Django", "redis", "hiredis")
FULL_ROUNDS, FULL_JOBS, FULL_PEER_JOBS = 5, 50_000, 10_000
SHORT_ROUNDS, SHORT_JOBS, SHORT_PEER_JOBS = 1, 10_000, 2_000


@dataclass(frozen=True)
class Peer:
    """Another queue: how its jobs are sent, how its worker is started, and how many jobs it still has to do."""

    name: str
    send: tuple[str, ...]
    work: tuple[str, ...]
    left: Callable[[redis.Redis], int]
    bar: Bar | None


def _taskiq_worker(broker: str) -> tuple[str, ...]:
    target = f"benchmarks.peer_taskiq:{broker}"
    quiet = ("--log-level", "WARNING")  # it would print two lines a task otherwise
    return ("-m", "taskiq", "worker", target, "--workers", "1", "--max-async-tasks", "100", *quiet)


PEERS = (
    Peer(
        "Dramatiq",
        ("-m", "benchmarks.peer_dramatiq"),
        ("-m", "dramatiq", "benchmarks.peer_dramatiq", "--processes", "1", "--threads", "10"),
        lambda client: int(client.hlen("dramatiq:default.msgs")),
        Bar(5.0),
    ),
    Peer(
        "Taskiq, list broker",
        ("-m", "benchmarks.peer_taskiq", "list"),
        _taskiq_worker("list_broker"),
        lambda client: int(client.llen("taskiq")),
        Bar(5.0),
    ),
    Peer(
        "Taskiq, stream broker",
        ("-m", "benchmarks.peer_taskiq", "stream"),
        _taskiq_worker("stream_broker"),
        lambda client: _stream_left(client),
        Bar(5.0),
    ),
)


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Measures and prints everything; true when every bar holds."""
    rounds, jobs, peer_jobs = (
        (SHORT_ROUNDS, SHORT_JOBS, SHORT_PEER_JOBS) if short else (FULL_ROUNDS, FULL_JOBS, FULL_PEER_JOBS)
    )
    python = _environment_of_peers()
    figures = {peer.name: Figure(f"drain, beside {peer.name}", "jobs/s", peer.bar) for peer in PEERS}
    with BenchmarkServer(persistent=persistent) as server:
        os.environ.update(project_environment(server.url, server.folder))
        import django

        django.setup()
        for _ in range(rounds):
            progress("Mainspring")
            ours = _drain_ours(server, jobs)
            for peer in PEERS:
                progress(peer.name)
                figures[peer.name].add(ours, _drain_peer(server, peer, python, peer_jobs))
        facts = conditions(server.client, PACKAGES)
    facts |= {"peers": ", ".join(_installed(python)), "rounds": f"{rounds}, medians; in turn on one server"}
    facts["jobs a round"] = f"{jobs:,} of ours, {peer_jobs:,} of a peer's; no-op, sync with us and Dramatiq, else async"
    return show("Draining no-op jobs beside other queues", facts, figures.values(), reference="peer", as_json=as_json)


def _drain_ours(server: BenchmarkServer, count: int) -> float:
    """Jobs a second from the first that ended to the last, with a worker that finds a full pool, like theirs."""
    from benchmarks.workload.jobs import POOL, nothing
    from jobs.engine import get_engine, reset_engine
    from jobs.store.keys import partition_keys

    server.client.flushall()
    reset_engine()
    engine = get_engine()
    nothing.enqueue_many([{}] * count)
    (route,) = engine.topology.partitions(POOL)
    line = partition_keys(engine.store.namespace, route).succeeded
    with Host(server.url, server.folder, "--pool", POOL, "--concurrency", "10"):
        return _rate(lambda: count - int(server.client.zcard(line)), count)


def _drain_peer(server: BenchmarkServer, peer: Peer, python: Path, count: int) -> float:
    server.client.flushall()
    environment = {**os.environ, "PEER_URL": server.url, "PYTHONPATH": str(ROOT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    subprocess.run([python, *peer.send, str(count)], cwd=ROOT, env=environment, check=True)
    with (server.folder / "peer.log").open("ab") as log:
        worker = subprocess.Popen(
            [python, *peer.work],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=tied(),
        )
        try:
            return _rate(lambda: peer.left(server.client), count)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def _rate(left: Callable[[], int], count: int) -> float:
    """Jobs a second between the first reading with something done and the one with nothing left."""
    wait_until(lambda: left() < count, 60, every=0.005)
    began, at_begin = time.perf_counter(), left()
    wait_until(lambda: left() == 0, 300, every=0.01)
    return at_begin / (time.perf_counter() - began)


def _stream_left(client: redis.Redis) -> int:
    """Entries that nobody acknowledged: not delivered yet, or delivered and pending."""
    (group,) = client.xinfo_groups("taskiq") or ({"lag": 1, "pending": 0},)
    return int(group["lag"] or 0) + int(group["pending"])


def _environment_of_peers() -> Path:
    """The Python of an environment with the peers in it, made when it is not there."""
    folder = (
        Path(tempfile.gettempdir())
        / f"mainspring-peers-{sys.version_info[0]}.{sys.version_info[1]}-{len(REQUIREMENTS)}"
    )
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        progress(f"installing {', '.join(REQUIREMENTS)} into {folder}")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (folder / "complete").touch()
    return python


def _installed(python: Path) -> list[str]:
    listing = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if line.startswith(("dramatiq", "taskiq", "redis", "hiredis"))]
