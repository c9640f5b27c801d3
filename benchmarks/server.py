"""A Redis-compatible server that belongs to one benchmark run alone."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from jobs.runtime.process import tied
from jobs.store import embedded


class BenchmarkServer:
    """Starts a server on a Unix socket in a folder of its own and removes both at the end.

    ``persistent``: append-only file with a sync each second, as the embedded server of a project has.
    """

    def __init__(self, *, persistent: bool = True) -> None:
        self.persistent = persistent
        self.folder = Path(tempfile.mkdtemp(prefix="mainspring-benchmark-"))
        self.socket = self.folder / "server.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [
                embedded.binary(),
                *("--port", "0"),
                *("--unixsocket", str(self.socket)),
                *("--dir", str(self.folder)),
                *("--save", ""),
                *("--appendonly", "yes" if self.persistent else "no"),
                *("--appendfsync", "everysec"),
                # A rewrite of the file would begin somewhere, and be counted to whatever is measured just then.
                *("--auto-aof-rewrite-percentage", "0"),
            ],
            stdout=subprocess.DEVNULL,
            preexec_fn=tied(),
        )
        self.client = redis.Redis.from_url(self.url)
        deadline = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > deadline:
                raise SystemExit("The benchmark's server did not start within 10 s.")
            time.sleep(0.02)
        return self

    def cpu_seconds(self) -> float:
        """Processor time that the server has used, to the nanosecond."""
        assert self._process is not None
        return time.clock_gettime((~self._process.pid << 3) | 2)  # the kernel's clock id of that process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False
