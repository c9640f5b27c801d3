"""An executor on a table: one attempt, from a leased job to what is reported about it.

No store, no process, no slot thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from jobs.api import job
from jobs.conf import get_settings
from jobs.core.job import LeasedJob
from jobs.engine import Failure
from jobs.registry import registry
from jobs.worker import cells, database
from jobs.worker.batch import Batch, Marks
from jobs.worker.bridge import current_slot
from jobs.worker.cells import Cells
from jobs.worker.executor import Executor
from jobs.worker.herald import Herald
from jobs.worker.settlement import Settlement
from jobs.worker.work import Work
from tests.worker.leased import leased


class Bench:
    """An executor with everything around it that it needs, on a table."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        self.thread = thread
        fd = cells.create()
        self.cells = Cells(fd)
        os.close(fd)
        self.marks = Marks()
        self.said: list[tuple[Any, ...]] = []
        self.slot: Any = SimpleNamespace(cell=self.cells.new_cell(), current=None, inbox=None)
        self.herald = Herald()
        self.messenger: Any = SimpleNamespace(expect=lambda lease: None, read_parents=lambda lease: {})
        self.loop = loop
        self.lease_seconds = 10.0

    @cached_property
    def executor(self) -> Executor:
        """Made with the settings that the test has made by then. This thread is its slot's."""
        current_slot.set(self.slot)
        database.adopt_thread()
        reports: Any = SimpleNamespace(
            progress=lambda lease, *what: self.said.append((lease.id, *what)),
            line=lambda lease, *what, at_ms: self.said.append((lease.id, *what, at_ms)),
        )
        return Executor(get_settings(), self.loop, self.marks, reports, self.herald, self.messenger, None)

    def batch(self, leased_at: float | None = None) -> Batch:
        return Batch(
            1,
            "token-1",
            leased().route,
            1,
            leased_at=time.monotonic() if leased_at is None else leased_at,
            clock_offset=1_800_000_000_000 - time.monotonic() * 1000,
            lease_seconds=self.lease_seconds,
            cells=self.cells,
        )

    def run(self, lease: LeasedJob, batch: Batch | None = None) -> Settlement:
        work = Work(batch or self.batch(), lease, registry.get(lease.type))
        return self.executor.run(self.slot, work, time.monotonic())

    def run_function(self, function: Any, payload: dict[str, Any] | None = None, **facts: Any) -> Settlement:
        """As a job type of its own."""
        with registry.restored():
            job("bench.job")(function)
            return self.run(leased(type="bench.job", payload=json.dumps(payload or {}).encode(), **facts))


def failure(settlement: Settlement) -> Failure:
    assert isinstance(settlement, Failure), settlement
    return settlement


def error_of(settlement: Settlement) -> dict[str, Any]:
    raw = failure(settlement).error
    assert raw is not None
    return json.loads(raw)
