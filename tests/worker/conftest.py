"""The parts of a child around a real store, in this process; and an executor without any of them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from jobs.core.job import Job, Route
from jobs.engine import Completion, Engine, get_engine
from jobs.registry import registry
from jobs.worker import cells, database
from jobs.worker.batch import Batch, Marks
from jobs.worker.cells import Cells
from jobs.worker.fetcher import Fetcher
from jobs.worker.flusher import Flusher
from jobs.worker.options import WorkerOptions
from jobs.worker.permits import Permits
from jobs.worker.settlement import Drop, Settlement
from jobs.worker.slots import PoolSlots, Slot
from jobs.worker.work import Work
from tests.acceptance.handlers import jobs as handlers
from tests.support.wait import eventually
from tests.worker.bench import Bench

ROUTE = Route("default", 1, 0)


@dataclass
class Parts:
    """What a fetcher and a flusher talk to, with notes of what they said."""

    engine: Engine
    cells: Cells
    marks: Marks = field(default_factory=Marks)
    opened: list[tuple[int, list[str]]] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    burials: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.permits = Permits(self.engine)
        self.flusher = Flusher(
            self.engine,
            permits=self.permits,
            marks=self.marks,
            on_closed=self.closed.append,
            on_settled=lambda _: None,
            on_failure=lambda: self.failures.append("failed"),
            on_burial=lambda: self.burials.append("died"),
        )

    def enqueue(self, name: str = "test.echo", count: int = 1, **spec: Any) -> list[str]:
        """Ids of new jobs with empty payloads, straight into the engine."""
        defaults = registry.get(name).defaults if name in registry else handlers.echo.defaults
        made = msgspec.structs.replace(defaults, **{"type": name, **spec})
        return [enqueued.id for enqueued in self.engine.jobs.enqueue(made, [b"{}"] * count)]

    def get(self, job_id: str) -> Job:
        return self.engine.jobs.get(job_id)

    def states(self, ids: list[str]) -> set[str]:
        return {self.get(job_id).state.value for job_id in ids}


@pytest.fixture
def parts() -> Iterator[Parts]:
    fd = cells.create()
    yield Parts(get_engine(), Cells(fd))
    os.close(fd)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(database, "_in_use", set())  # what other tests left open in threads of their own
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with registry.restored():
        yield Bench(loop, thread)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


StartFetcher = Callable[..., Fetcher]


class Gate:
    """Holds every job at its start until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.begun: list[str] = []
        self.threads: list[int] = []

    def execute(self, slot: Slot, work: Work, begun: float) -> Settlement:
        if work.batch.is_over(begun):
            return Drop(work.lease.id)
        self.threads.append(threading.get_ident())
        self.begun.append(work.lease.id)
        self.opened.wait(20)
        lease = work.lease
        return Completion(lease.id, lease.token, lease.type, work.batch.server_ms(begun))


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def start_fetcher(parts: Parts, gate: Gate) -> Iterator[StartFetcher]:
    started: list[Fetcher] = []

    def announce(batch: Batch, ids: list[str]) -> None:
        assert not set(ids) & set(gate.begun), "announced after its start"
        parts.opened.append((batch.number, ids))

    def new_pool(name: str, size: int, on_room: Callable[[], None]) -> PoolSlots:
        return PoolSlots(
            name,
            size,
            cells=parts.cells,
            execute=gate.execute,
            settle=parts.flusher.settle,
            on_room=on_room,
        )

    def start(*, on_spent: Callable[[], None] = lambda: None, **options: Any) -> Fetcher:
        fetcher = Fetcher(
            parts.engine,
            WorkerOptions(**{"pools": ("default",), "concurrency": 2, **options}),
            f"worker-{len(started)}",
            cells=parts.cells,
            flusher=parts.flusher,
            permits=parts.permits,
            new_pool=new_pool,
            announce=announce,
            on_spent=on_spent,
        )
        started.append(fetcher)
        fetcher.start()
        return fetcher

    parts.flusher.start()
    yield start
    for fetcher in started:
        fetcher.quiesce()
    gate.opened.set()
    eventually(lambda: all(fetcher.in_hand == 0 for fetcher in started))
    parts.flusher.finish(5)
