"""Says in the store that this host and its workers are there and how they are, and hears what they are told."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic, time
from typing import Protocol

from jobs.core.job import iso, moment
from jobs.core.pause import Pause
from jobs.engine import Engine, WorkerInfo
from jobs.engine.workers import EndedHost, Heard
from jobs.runtime.process import cpu_seconds, resident_bytes
from jobs.worker.child_handle import ChildHandle

BEAT_SECONDS = 5.0
TTL_SECONDS = 16.0
"""Three beats may fail before the host counts as gone."""

SHORTEST_SECONDS = 1.0
"""The kernel counts processor time in steps of 10 ms: over two beats in a row one looks like many processors."""

MARGIN_SECONDS = 0.01
"""After the end of a pause, so that it is over by the server's clock too."""


class Host(Protocol):
    """What presence needs to know of the supervisor."""

    id: str

    @property
    def state(self) -> str: ...

    @property
    def children(self) -> list[ChildHandle]: ...

    def state_of(self, child: ChildHandle) -> str: ...


class CpuMeter:
    """Processor time of processes, and how much of it lately."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float, float]] = {}  # pid → moment (monotonic), seconds used by then, rate

    def read(self, pid: int) -> tuple[float, float]:
        """``cpu_seconds`` and ``cpu`` as in ``WorkerInfo``; the first look has nothing to compare with."""
        now, used = monotonic(), cpu_seconds(pid)
        before, used_before, rate = self._last.setdefault(pid, (now, used, 0.0))
        if now - before >= SHORTEST_SECONDS:
            rate = max(0.0, used - used_before) / (now - before)
            self._last[pid] = (now, used, rate)
        return round(used, 2), round(rate, 3)

    def keep(self, pids: set[int]) -> None:
        """Forgets the other processes: their numbers may come again."""
        self._last = {pid: seen for pid, seen in self._last.items() if pid in pids}


class Presence:
    """``tick`` beats for all of them in one call, and once more where it heard of a pause. ``obey`` is called with
    (worker id, command), ``hold`` with the pause of the host when it begins or changes, with None once it is over, and
    ``enter_anew`` when the store knows the host no more: it was emptied, or is an older copy."""

    def __init__(
        self,
        engine: Engine,
        host: Host,
        version: str,
        obey: Callable[[str, str], None],
        hold: Callable[[Pause | None], None],
        enter_anew: Callable[[], object],
    ) -> None:
        self._engine = engine
        self._host = host
        self._version = version
        self._obey = obey
        self._hold = hold
        self._enter_anew = enter_anew
        self._has_beaten = False
        self._pause: Pause | None = None
        self._hostname = platform.node()
        self._started_at_ms = int(time() * 1000)
        self._gone: SimpleQueue[str] = SimpleQueue()
        self._cpu = CpuMeter()

    def forget(self, child: ChildHandle) -> None:
        """It has ended: the next beat takes it off the list."""
        self._gone.put(child.id)

    def tick(self) -> float:
        heard = self._beat()
        if self._has_beaten and not heard.was_known:
            self._enter_anew()
        self._has_beaten = True
        if heard.pause != self._pause:
            self._pause = heard.pause
            self._hold(heard.pause)
            heard = self._beat()  # whoever looks is told now that it holds
        for worker_id, orders in heard.commands.items():
            for order in orders:
                self._obey(worker_id, order)
        self._engine.workers.leave(self._take_gone())
        return min(BEAT_SECONDS, heard.seconds + MARGIN_SECONDS)

    def _beat(self) -> Heard:
        children = [child for child in self._host.children if child.pid is not None]
        self._cpu.keep({os.getpid(), *(child.pid for child in children if child.pid)})
        infos = [self._of_host(), *map(self._of_child, children)]
        return self._engine.workers.beat(infos, ttl_ms=int(TTL_SECONDS * 1000))

    def leave(self, why: str, handed_back: int) -> None:
        """The host ends in good order (see ``EndedHost``)."""
        ended = EndedHost(
            id=self._host.id,
            hostname=self._hostname,
            pid=os.getpid(),
            version=self._version,
            started_at_ms=self._started_at_ms,
            ended_at_ms=self._engine.jobs.server_now_ms(),
            why=why,
            handed_back=handed_back,
        )
        children = (child.id for child in self._host.children)
        self._engine.workers.leave([self._host.id, *children, *self._take_gone()], ended)

    def _of_host(self) -> WorkerInfo:
        children = self._host.children
        pools: dict[str, int] = {}
        for child in children:
            for pool, slots in child.report.slots.items():
                pools[pool] = pools.get(pool, 0) + slots
        used, cpu = self._cpu.read(os.getpid())
        return WorkerInfo(
            id=self._host.id,
            host=self._host.id,
            hostname=self._hostname,
            pid=os.getpid(),
            pools=pools,
            started_at_ms=self._started_at_ms,
            state=self._host.state,
            running=sum(child.report.running for child in children),
            rss=resident_bytes(os.getpid()),
            cpu_seconds=used,
            cpu=cpu,
            version=self._version,
        )

    def _of_child(self, child: ChildHandle) -> WorkerInfo:
        assert child.pid is not None
        used, cpu = self._cpu.read(child.pid)
        return WorkerInfo(
            id=child.id,
            host=self._host.id,
            hostname=self._hostname,
            pid=child.pid,
            pools=child.report.slots,
            started_at_ms=child.started_at_ms,
            state=self._host.state_of(child),
            running=child.report.running,
            rss=resident_bytes(child.pid),
            cpu_seconds=used,
            cpu=cpu,
            version=self._version,
            current=[{"id": job.id, "started_at": iso(moment(job.started_at_ms))} for job in child.cells.started()],
        )

    def _take_gone(self) -> list[str]:
        gone = []
        while True:
            try:
                gone.append(self._gone.get_nowait())
            except Empty:
                return gone
