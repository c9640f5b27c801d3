"""Real worker hosts, started by the command that people use, and what they did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO

from jobs.engine import Worker, get_engine
from jobs.runtime.process import tied
from tests.support.wait import eventually

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0


class Host:
    """``manage.py runworkers …`` in a process group of its own. What it logs is kept; what handlers print as well, or
    nobody reads it."""

    def __init__(self, *arguments: str, environment: dict[str, str], log: Path, reads_output: bool = True) -> None:
        self.arguments = arguments
        self._log = log
        with log.open("w") as sink, sink if reads_output else _nobody() as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "runworkers", *arguments],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=sink,
                start_new_session=True,
                preexec_fn=tied(),
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def nursery(self) -> int:
        return children_of(self.pid)[0]

    @property
    def workers(self) -> list[int]:
        """Process ids of the children."""
        return children_of(self.nursery)

    @property
    def tree(self) -> list[int]:
        return [self.pid, self.nursery, *self.workers]

    @property
    def registered(self) -> Worker | None:
        """What it says of itself."""
        return next(
            (worker for worker in get_engine().workers.all() if worker.is_host and worker.pid == self.pid), None
        )

    def consuming(self) -> Host:
        """Waits until jobs are taken."""
        eventually(lambda: self._has_ended() or self._is_consuming(), within=START_SECONDS, every=0.05)
        assert not self._has_ended(), self.log
        return self

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def signal_all(self, number: signal.Signals) -> None:
        """To the supervisor, the nursery and every child."""
        for pid in self.tree:
            os.kill(pid, number)

    def wait(self, timeout: float = 60.0) -> int:
        """Its exit code."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the host has not ended after {timeout:g} s:\n{self.log}") from None

    def end(self) -> None:
        """Whatever state it is in: away with it, and with all that it started."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _is_consuming(self) -> bool:
        return (registered := self.registered) is not None and registered.state == "consuming"

    def _has_ended(self) -> bool:
        return self.process.poll() is not None


class Journal:
    """What handlers wrote down: words and job ids in the order of events, over all processes."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        path.touch()
        self._lines: list[tuple[str, str, int]] = []
        self._read_bytes = 0

    def lines(self) -> list[tuple[str, str, int]]:
        """(word, job id, process id). Only what is new is read: tests ask a hundred times a second."""
        with open(self.path, "rb") as file:
            file.seek(self._read_bytes)
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        self._lines += [(word, job_id, int(pid)) for word, job_id, pid in map(str.split, whole.decode().splitlines())]
        return list(self._lines)

    def count(self, word: str, job_id: str | None = None) -> int:
        return sum(found == word and job_id in (None, of) for found, of, _ in self.lines())

    def counts(self, word: str) -> Counter[str]:
        """Job id → how often."""
        return Counter(job_id for found, job_id, _ in self.lines() if found == word)

    def pid_of(self, word: str, job_id: str) -> int:
        return next(pid for found, of, pid in self.lines() if found == word and of == job_id)


StartHost = Callable[..., Host]
Manage = Callable[..., str]


def _nobody() -> IO[bytes]:
    """Where to write for a reader who has gone."""
    ear, mouth = os.pipe()
    os.close(ear)
    return open(mouth, "wb")


def children_of(pid: int) -> list[int]:
    """Processes whose parent it is, of any of its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def is_alive(pid: int) -> bool:
    """There, and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
