"""Worker hosts as real ``runworkers`` processes, and the harm that can be done to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from jobs.runtime.process import tied

ROOT = Path(__file__).resolve().parent.parent.parent


class WorkerHost:
    """One ``manage.py runworkers`` in a session of its own, by which all its processes can be found."""

    def __init__(self, name: str, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.name = name
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "runworkers", *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=tied(),
            )
        self.pid = self.process.pid

    def kill(self) -> list[int]:
        """SIGKILL of the supervisor alone; its children must die with it. Which processes it had."""
        had = self.members()
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        return had

    def stop(self, within: float = 20) -> int:
        """SIGTERM, and SIGKILL if that is not enough in time; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def freeze(self) -> list[int]:
        """SIGSTOP to every process of the host; which ones."""
        frozen = self.members()
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return frozen

    def thaw(self, frozen: list[int]) -> None:
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill_child(self) -> int | None:
        """SIGKILL of one process that runs jobs; None where there is none at the moment."""
        for pid in self.members():
            if pid != self.pid and _parent(pid) != self.pid:  # the nursery is the supervisor's child, workers are its
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return pid
        return None

    def members(self) -> list[int]:
        """All living processes of its session."""
        return [pid for pid in _all_processes() if _session(pid) == self.pid]

    def leaves_nobody(self, within: float = 3.0) -> bool:
        """Whether all its processes are gone, or go in time."""
        deadline = time.monotonic() + within
        while self.members():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def _all_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty for one that is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    fields = text.rpartition(")")[2].split()
    return [] if fields[0] in "ZX" else fields


def _session(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[3]) if fields else -1


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else -1
