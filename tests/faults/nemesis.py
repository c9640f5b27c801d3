"""Does harm on a timetable, and proves each time that it was done."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.stage import NobodyWorks, Stage
from tests.faults.workload.jobs import POOL

Fault = Callable[[Stage, dict[str, Any]], None]
"""Does harm to the stage and writes the proof that it took effect into the dictionary."""


def kill_host(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGKILL of a supervisor. A new host takes its place."""
    host = stage.working_host()
    members = host.kill()
    if host.leaves_nobody():
        proof["killed"] = members
    stage.replace_host(host)


def terminate_host(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGTERM, as a deployment does: what runs is finished, the rest is handed back. A new host takes its place."""
    host = stage.working_host()
    proof["exit code"] = host.stop()
    stage.replace_host(host)


def kill_child(stage: Stage, proof: dict[str, Any]) -> None:
    """SIGKILL of a process that runs jobs."""
    host = stage.working_host()
    if (pid := host.kill_child()) is not None:
        proof["killed"] = pid


def freeze_host(leases: float = 3.0) -> Fault:
    """SIGSTOP of a whole host for some leases, then SIGCONT."""

    def freeze(stage: Stage, proof: dict[str, Any]) -> None:
        host = stage.working_host()
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


def pause(seconds: float) -> Fault:
    """Not a fault of anybody's, but a promise to keep under faults: the pool is paused for a while."""

    def pause_and_resume(stage: Stage, proof: dict[str, Any]) -> None:
        kill_host(stage, {})  # its leases run out during the pause; once that is acknowledged, hardly anything runs
        op = stage.history.write("pause", "invoke", pool=POOL)
        stage.engine.pools.pause(POOL, by="nemesis")
        stage.history.write("pause", "ok", op, pool=POOL)
        time.sleep(seconds)
        op = stage.history.write("resume", "invoke", pool=POOL)
        stage.engine.pools.resume(POOL)
        stage.history.write("resume", "ok", op, pool=POOL)
        proof["seconds"] = seconds

    return pause_and_resume


def drop_connections(stage: Stage, proof: dict[str, Any]) -> None:
    """All connections through the proxy are closed at once."""
    stage.proxy.drop_all()
    proof["dropped"] = True


@dataclass(frozen=True)
class Every:
    """Harm that comes again and again: how many seconds lie between two (on average, where they are drawn), and how
    often at most."""

    seconds: float
    fault: Fault
    at_most: int = 1_000_000


def harm(
    stage: Stage, timetable: dict[str, Every], *, while_: Callable[[], bool], within: float, patience: float = 0
) -> None:
    """Does what the timetable says, one fault at a time, as long as ``while_`` holds. RuntimeError after ``within``.

    ``patience``: and so many seconds more at most, in which there is a little work for everybody, until each fault has
    taken effect once: a busy machine needs them.

    In the caller's thread on purpose: the kernel ties a server's life to the thread that started it.
    """
    began = time.monotonic()
    next_at = {
        name: began + stage.until_next(every.seconds) if every.at_most else math.inf
        for name, every in timetable.items()
    }
    done: Counter[str] = Counter()
    proven: set[str] = set()
    patient_until = math.inf

    def is_owed() -> bool:
        """Whether one that is still to come has not taken effect yet."""
        nonlocal patient_until
        patient_until = min(patient_until, time.monotonic() + patience)
        owed = any(name not in proven and at < math.inf for name, at in next_at.items())
        return owed and time.monotonic() < patient_until

    while (goes_on := while_()) or is_owed():
        if time.monotonic() > began + within:
            raise RuntimeError(f"what was to be done under faults took more than {within:g} s; see {stage.folder}")
        if not goes_on:
            stage.keep_busy()  # a new host proves that it works by working
        name = min(next_at, key=lambda each: next_at[each])
        time.sleep(min(0.05, max(0.0, next_at[name] - time.monotonic())))
        if next_at[name] > time.monotonic():
            continue
        every = timetable[name]
        try:
            with stage.history.fault(name) as proof:
                every.fault(stage, proof)
        except NobodyWorks:
            pass  # every host still starts, so there is nobody to harm
        else:
            done[name] += 1
            proven |= {name} if proof else set()
        is_over = done[name] >= every.at_most
        next_at[name] = math.inf if is_over else time.monotonic() + stage.until_next(every.seconds)
