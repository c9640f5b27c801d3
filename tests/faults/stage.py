"""All that a fault run puts on: server, proxy, worker hosts, producers, their histories, and the judgement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import redis

from jobs.conf import Settings
from jobs.core.job import Job
from jobs.core.states import LIVE
from jobs.engine import Engine
from jobs.exceptions import SchedulerError
from jobs.runtime.process import tied
from jobs.store.connection import Store
from tests.faults import history
from tests.faults.checker import check
from tests.faults.checker.report import TERMINAL, Expectations, FinalJob, Report, Violation
from tests.faults.hosts import WorkerHost
from tests.faults.proxy import Proxy
from tests.faults.server import fault_server
from tests.faults.structure import Structure, read_structure
from tests.faults.workload.jobs import POOL

ROOT = Path(__file__).resolve().parent.parent.parent
NAMESPACE = "faults"
SLOTS = 10


class NobodyWorks(Exception):
    """No worker host has leased anything yet."""


class Stage:
    """One run in a folder of its own. Everything that it starts is gone when the ``with`` block ends."""

    def __init__(
        self,
        folder: Path,
        *,
        lease_seconds: float = 2.0,
        through_proxy: bool = False,
        fires_schedules: bool = False,
        draw: Random | None = None,
    ) -> None:
        self.folder = folder
        self.draw = draw
        """Draws whom and when harm meets; without it, the host that works longest, at fixed intervals."""
        self.fires_schedules = fires_schedules
        self.lease_seconds = lease_seconds
        self.through_proxy = through_proxy
        self.histories = folder / "history"
        self.hosts: list[WorkerHost] = []
        self.producers: list[subprocess.Popen[bytes]] = []
        self._names = 0

    def __enter__(self) -> Stage:
        self.server = fault_server(self.folder / "server")
        self.client: redis.Redis = self.server.client()
        self.engine = Engine(
            Store(self.server.url, NAMESPACE), Settings(redis_url=self.server.url, namespace=NAMESPACE)
        )
        self.engine.topology.ensure(POOL)
        self.history = history.History(self.histories, "nemesis")
        self.proxy = Proxy(self.server.socket, self.folder / "proxy.sock")
        self.proxy.start()
        return self

    def __exit__(self, *_: object) -> None:
        for producer in self.producers:
            producer.kill()
            producer.wait()
        for host in self.hosts:
            host.kill()
        self.proxy.stop()
        self.engine.close()
        self.client.close()
        if self.server.process is not None:
            self.server.kill()
        self.history.close()

    # --- who acts -----------------------------------------------------------------------------------------------

    def start_host(self, *, processes: int = 1, slots: int = SLOTS, **environment: str) -> WorkerHost:
        """Starts a worker host; it may need a second or two until it leases."""
        self._names += 1
        name = f"host-{self._names}"
        host = WorkerHost(
            name,
            [
                *("--pool", POOL, "--processes", str(processes), "--concurrency", str(slots)),
                *("--lease", str(self.lease_seconds), "--grace", "5"),
                *(() if self.fires_schedules else ("--no-schedules",)),
            ],
            self.environment(name) | environment,
            self.folder / f"{name}.log",
        )
        self.hosts.append(host)
        return host

    def replace_host(self, host: WorkerHost) -> WorkerHost:
        self.hosts.remove(host)
        return self.start_host()

    def working_host(self) -> WorkerHost:
        """The one that has leased for the longest time, or any. NobodyWorks while all of them still start."""
        working = [host for host in self.hosts if self._writers(host) > 1]  # its supervisor too: it has had leases
        if not working:
            raise NobodyWorks
        return self.draw.choice(working) if self.draw else working[0]

    def wait_for_hosts(self, within: float = 30) -> None:
        """Until each has asked for work."""
        self.wait_until(lambda: all(map(self._writers, self.hosts)), "not every host asked for work", within)

    def _writers(self, host: WorkerHost) -> int:
        """How many of its processes have written something."""
        return len(list(self.histories.glob(f"{host.name}-*.jsonl")))

    def until_next(self, seconds: float) -> float:
        """Seconds until harm that comes every so many comes again."""
        return seconds * self.draw.uniform(0.1, 1.9) if self.draw else seconds

    def producing(self) -> bool:
        """Whether a producer is still at it."""
        return any(producer.poll() is None for producer in self.producers)

    def start_producer(self, count: int, *, mix: str = "everything", rate: float = 0.0, seed: int = 0) -> None:
        self._names += 1
        name = f"producer-{self._names}"
        self.producers.append(
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.faults.producer", "--count", str(count)),
                    *("--mix", mix, "--rate", str(rate), "--seed", str(seed)),
                ],
                cwd=ROOT,
                env=self.environment(name),
                preexec_fn=tied(),
            )
        )

    def wait_for_producers(self, within: float = 120) -> None:
        deadline = time.monotonic() + within
        for producer in self.producers:
            try:
                code = producer.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"a producer did not finish within {within:g} s; see {self.folder}") from None
            if code != 0:
                raise RuntimeError(f"a producer ended with {code}; see {self.folder}")

    def enqueue(self, type_name: str, payloads: list[dict[str, Any]], **options: Any) -> list[str]:
        """Enqueues from this process, with the history that a producer would write."""
        from jobs.core.job import JobSpec

        ops = [self.history.write("enqueue", "invoke", key=payload["key"]) for payload in payloads]
        created = self.engine.jobs.enqueue(
            JobSpec(type=type_name, pool=POOL, **options), [json.dumps(payload).encode() for payload in payloads]
        )
        for op, job in zip(ops, created, strict=True):
            self.history.write("enqueue", "ok", op, job=job.id)
        return [job.id for job in created]

    def keep_busy(self) -> None:
        """A little work for everybody, where there is none."""
        if self.live() == 0:
            self._names += 1
            keys = [f"busy:{self._names}:{number}" for number in range(2 * SLOTS)]
            self.enqueue("fault.work", [{"key": key, "seconds": 0.5} for key in keys])

    def environment(self, name: str, *, direct: bool = False) -> dict[str, str]:
        """Of a process that takes part under this name; ``direct``: past the proxy."""
        url = self.proxy.url if self.through_proxy and not direct else self.server.url
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
            "DJANGO_SECRET_KEY": "only-for-faults",
            "SCHEDULER_REDIS_URL": url,
            "SCHEDULER_NAMESPACE": NAMESPACE,
            "SCHEDULER_APPS": "tests.faults.workload.apps.WorkloadConfig",
            "SCHEDULER_VAR_DIR": str(self.folder / "var"),
            "FAULTS_HISTORY": str(self.histories),
            "FAULTS_PROC": name,
        }

    def server_cpu_seconds(self) -> float:
        """Processor time of the server so far, to the nanosecond: what a call costs, whatever else the machine does."""
        assert self.server.process is not None
        return time.clock_gettime((~self.server.process.pid << 3) | 2)  # the kernel's clock id of that process

    # --- how far it is ------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """State → jobs."""
        pool = self.engine.pools.get(POOL)
        return {state: pool.count(state) for state in (*LIVE, "succeeded", "dead", "cancelled")}

    def live(self) -> int:
        counts = self.counts()
        return sum(counts[state] for state in LIVE)

    def wait_until_drained(self, within: float = 90) -> None:
        """Until nothing is live; how long it may take is part of the promise, what is left is judged by K1."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            with suppress(SchedulerError):
                if self.live() == 0:
                    return
            time.sleep(0.1)

    def wait_until(self, condition: Callable[[], bool], otherwise: str, within: float = 60) -> None:
        deadline = time.monotonic() + within
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{otherwise} within {within:g} s; see {self.folder}")
            time.sleep(0.1)

    def wait_for_claims(self, within: float = 30) -> None:
        """Until some worker has leased something."""
        self.wait_until(
            lambda: any(event.event == "run" for event in history.read(self.histories)),
            "no worker leased anything",
            within,
        )

    # --- the judgement --------------------------------------------------------------------------------------------

    def judge(self, expected: Expectations, *, every_way: bool = True) -> Report:
        """Reads the end state three ways, and checks it and the histories."""
        for host in self.hosts:
            host.stop()
        structure = read_structure(self.client, NAMESPACE)
        final = self._read_by_api(structure)
        report = check(history.read(self.histories), final, expected)
        report.violations += [Violation("K16", "structure", problem) for problem in structure.problems]
        report.violations += [Violation("K16", "counters", problem) for problem in _miscounted(structure)]
        states = {job.id: job.state for job in structure.jobs.values()}
        self._compare(report, "API", states, {job.id: job.state for job in final.values()})
        if every_way:
            self._compare(report, "command", states, self._read_by_command())
        (self.folder / "report.txt").write_text(str(report))
        return report

    def _read_by_api(self, structure: Structure) -> dict[str, FinalJob]:
        ids = sorted(structure.jobs)
        jobs = (
            job
            for start in range(0, len(ids), 500)
            for job in self.engine.jobs.get_many(ids[start : start + 500])
            if job is not None
        )
        return {job.id: _final(job) for job in jobs}

    def _read_by_command(self) -> dict[str, str]:
        """Every job by ``manage.py jobs list --json``, page by page."""
        states: dict[str, str] = {}
        cursor: list[str] = []
        while True:
            page = json.loads(self.manage("jobs", "list", "--limit", "1000", "--json", *cursor))
            states |= {job["id"]: job["state"] for job in page["items"]}
            if page["next_cursor"] is None:
                return states
            cursor = ["--cursor", page["next_cursor"]]

    def manage(self, *arguments: str) -> str:
        """What a command prints."""
        environment = self.environment("command", direct=True)
        del environment["FAULTS_HISTORY"]
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"manage.py {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    @staticmethod
    def _compare(report: Report, way: str, raw: dict[str, str], seen: dict[str, str]) -> None:
        differing = sorted(job for job in raw.keys() | seen.keys() if raw.get(job) != seen.get(job))
        for job in differing[:20]:
            report.violations.append(
                Violation("K16", job, f"raw keys say {raw.get(job)}, the {way} says {seen.get(job)}")
            )


def _miscounted(structure: Structure) -> Iterator[str]:
    """Totals that are not what is there. Runs resubmit, discard and prune nothing, so each job was counted once."""
    there = Counter(f"enqueued:{job.body.type}" for job in structure.jobs.values() if job.body)
    there += Counter(
        f"{job.state}:{job.body.type}" for job in structure.jobs.values() if job.body and job.state in TERMINAL
    )
    for name in sorted(there | structure.counters):
        counted = structure.counters.get(name, 0)
        if name.partition(":")[0] in {"enqueued", *TERMINAL} and counted != there[name]:
            yield f"{name} was counted {counted} times, there are {there[name]}"


def _final(job: Job) -> FinalJob:
    failures = sum(attempt.outcome == "failed" for attempt in job.attempts) if not job.resubmissions else 0
    return FinalJob(
        id=job.id,
        state=job.state,
        attempt=job.attempt,
        crashes=job.crashes,
        max_retries=job.max_retries,
        max_crashes=job.max_crashes,
        failures=failures,
        resubmissions=job.resubmissions,
    )


@contextmanager
def stage(folder: Path, **options: Any) -> Iterator[Stage]:
    with Stage(folder, **options) as made:
        yield made
