"""Our own side as users run it: a Django project's processes, started by ``manage.py runworkers``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from jobs.runtime.process import tied

ROOT = Path(__file__).resolve().parent.parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def project_environment(url: str, folder: Path) -> dict[str, str]:
    """The environment of every process of ours, also of this one."""
    return {
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "DJANGO_SECRET_KEY": "only-for-benchmarks",
        "SCHEDULER_REDIS_URL": url,
        "SCHEDULER_NAMESPACE": "benchmark",
        "SCHEDULER_APPS": "benchmarks.workload",
        "SCHEDULER_VAR_DIR": str(folder / "var"),
        "BENCHMARK_STAMPS": str(folder / "stamps"),
    }


class Host:
    """One worker host with one worker process. Ready when the ``with`` block begins, gone when it ends. ``schedules``:
    it looks after them too, which takes a database."""

    def __init__(self, url: str, folder: Path, *arguments: str, schedules: bool = False) -> None:
        if not schedules:
            arguments = ("--no-schedules", *arguments)
        self._arguments = arguments
        self._environment = {**os.environ, **project_environment(url, folder)}
        self._log = folder / "host.log"

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "runworkers", *self._arguments],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=tied(),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def processes(self) -> list[int]:
        """Supervisor, nursery and worker, by their session."""
        return [
            int(name) for name in os.listdir("/proc") if name.isdigit() and _session(int(name)) == self._process.pid
        ]

    def cpu_seconds(self) -> float:
        """Processor time that all of them have used."""
        return sum(_cpu_seconds(pid) for pid in self.processes())

    def worker_rss_bytes(self) -> int:
        """Resident memory of the process that runs jobs: the youngest of them."""
        newest = max(self.processes())
        for line in Path(f"/proc/{newest}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0


def wait_until(condition: Callable[[], object], within: float, *, every: float = 0.02) -> None:
    """Asks ``condition()`` until it is true; SystemExit after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"The benchmark waited {within:g} s in vain.")
        time.sleep(every)


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[3]) if fields else -1


def _cpu_seconds(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND if fields else 0.0
