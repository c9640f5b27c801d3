"""What 200 open pages cost the web process while a thousand jobs a second run: memory and processor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.project import PAYLOAD, Seeder, environment, session_of, set_up
from benchmarks.server import BenchmarkServer
from jobs.runtime.process import tied

SOCKETS, USERS = 200, 10
JOBS_PER_SECOND = 1_000
SECONDS, SHORT_SECONDS = 30, 8
MEMORY_BAR, CPU_BAR = 100 * 2**20, 0.10


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Whether 200 sockets stay below both bars."""
    seconds = SHORT_SECONDS if short else SECONDS
    with BenchmarkServer(persistent=persistent) as server:
        set_up(server)
        cookies = [session_of(f"user-{number}") for number in range(USERS)]
        with Web(server) as web, Load():
            found = asyncio.run(_measure(web, cookies, seconds))
    if as_json:
        print(json.dumps(found))
    else:
        print(
            f"{SOCKETS} sockets at {JOBS_PER_SECOND:,} jobs/s: {found['memory_mb']} MB more than with none, "
            f"{found['cpu']:.1%} of a processor, {found['frames_per_second']} frames/s to each"
        )
    return bool(found["memory_mb"] * 2**20 < MEMORY_BAR and found["cpu"] < CPU_BAR)


async def _measure(web: Web, cookies: list[str], seconds: float) -> dict[str, Any]:
    """Opens them all, reads what comes for a while, and looks at the process from outside."""
    from websockets.asyncio.client import connect

    before = web.memory()
    origin = f"http://localhost:{web.port}"
    opened = [
        await connect(
            f"ws://localhost:{web.port}/ws/dashboard/",
            origin=origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": f"sessionid={cookies[number % USERS]}"},
        )
        for number in range(SOCKETS)
    ]
    frames = 0

    async def read(line: Any) -> None:
        nonlocal frames
        async for _ in line:
            frames += 1

    readers = [asyncio.create_task(read(line)) for line in opened]
    await asyncio.sleep(2)
    frames, cpu, began = 0, web.cpu_seconds(), time.monotonic()
    await asyncio.sleep(seconds)
    spent = (web.cpu_seconds() - cpu) / (time.monotonic() - began)
    memory = web.memory() - before
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*(line.close() for line in opened), return_exceptions=True)
    return {
        "sockets": SOCKETS,
        "memory_mb": round(memory / 2**20, 1),
        "cpu": round(spent, 4),
        "frames_per_second": round(frames / SOCKETS / seconds, 2),
    }


class Web:
    """The web process, started as plainly as it may be."""

    def __init__(self, server: BenchmarkServer) -> None:
        self._environment = environment(server)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def __enter__(self) -> Web:
        command = ["uvicorn", "scheduler_project.asgi:application", "--port", str(self.port), "--log-level", "warning"]
        self._process = subprocess.Popen([sys.executable, "-m", *command], env=self._environment, preexec_fn=tied())
        until = time.monotonic() + 60
        while True:
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            if time.monotonic() > until:
                raise SystemExit("The web process did not start within 60 s.")
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def memory(self) -> int:
        """Resident bytes."""
        fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        return time.clock_gettime((~self._process.pid << 3) | 2)  # the kernel's clock id of that process


class Load:
    """A thousand jobs a second that are enqueued, leased and completed, from a thread of this process."""

    def __enter__(self) -> Load:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        from jobs.core.job import JobSpec

        seeder, step = Seeder(), 0.05
        spec = JobSpec(type="mail.work", pool="mail")
        while not self._over.wait(step):
            seeder.engine.jobs.enqueue(spec, [PAYLOAD] * round(JOBS_PER_SECOND * step))
            seeder.end("mail", round(JOBS_PER_SECOND * step), "succeeded")
