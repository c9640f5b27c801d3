"""Does harm on a timetable, and proves each time that it was done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.faults.hosts import WorkerHost
from tests.faults.stage import Stage

Fault = Callable[[Stage, dict[str, Any]], None]
"""Does harm to the stage and writes the proof that it took effect into the dictionary."""


def kill_host(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGKILL of the oldest supervisor. A new host takes its place."""
    host = stage.hosts[0]
    members = host.kill()
    if host.leaves_nobody():
        proof["killed"] = members
    stage.replace_host(host)


def kill_child(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGKILL of a process that runs jobs."""
    host = stage.hosts[-1]
    if (pid := host.kill_child()) is not None:
        proof["killed"] = pid


def freeze_host(leases: float = 3.0) -> Fault:
    """SIGSTOP of a whole host for some leases, then SIGCONT."""

    def freeze(stage: Stage, proof: dict[str, Any]) -> None:
        host: WorkerHost = stage.hosts[-1]
        frozen = host.freeze()
        time.sleep(leases * stage.lease_seconds)
        host.thaw(frozen)
        if host.process.poll() is None:
            proof["frozen"] = frozen

    return freeze


def kill_server(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGKILL of the server, and a start on the same append-only file."""
    before = stage.client.dbsize()
    stage.server.kill()
    stage.server.start()
    proof["keys"] = [before, stage.client.dbsize()]


def freeze_server(seconds: float) -> Fault:
    """SIGSTOP of the server: connected and silent."""

    def freeze(stage: Stage, proof: dict[str, Any]) -> None:
        stage.server.stop()
        time.sleep(seconds)
        stage.server.cont()
        proof["seconds"] = seconds

    return freeze


def flush_scripts(stage: Stage, proof: dict[str, Any]) -> None:
    """SCRIPT FLUSH: every script is unknown to the server."""
    stage.client.script_flush()
    proof["flushed"] = True


def drop_connections(stage: Stage, proof: dict[str, Any]) -> None:
    """All connections through the proxy are closed at once."""
    stage.proxy.drop_all()
    proof["dropped"] = True


class Nemesis:
    """Runs each fault again and again at its own interval until it is told to stop. Faults never overlap themselves."""

    def __init__(self, stage: Stage, timetable: dict[str, tuple[float, Fault]], *, at_most: int = 1_000_000) -> None:
        self._stage = stage
        self._end = threading.Event()
        self._turn = threading.Lock()  # one fault at a time: each must find what it wants to harm
        self._at_most = at_most
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._repeat, args=(name, every, fault), name=f"nemesis {name}", daemon=True)
            for name, (every, fault) in timetable.items()
        ]

    def __enter__(self) -> Nemesis:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _repeat(self, name: str, every: float, fault: Fault) -> None:
        done = 0
        while done < self._at_most and not self._end.wait(every):
            try:
                with self._turn, self._stage.history.fault(name) as proof:
                    fault(self._stage, proof)
            except Exception as error:
                self.errors.append(error)
                return
            done += 1
