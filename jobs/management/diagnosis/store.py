"""The store, and all that can be asked once it answers."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.exceptions import SchedulerError, StoreNewer
from jobs.management.diagnosis.channels import check_channel_layer
from jobs.management.diagnosis.finding import Finding
from jobs.management.diagnosis.server import ask_server, judge_clock, judge_server
from jobs.management.diagnosis.workers import judge_workers


def check_store() -> Iterator[Finding]:
    """Asks the server about itself and judges the answer; nothing can be said of one that does not answer."""
    try:
        server = ask_server()
    except SchedulerError as error:
        yield Finding("store", "failed", str(error), "SCHEDULER_REDIS_URL", error.fix)
        for name in ("server version", "persistence", "memory", "clock", "workers"):
            yield Finding(name, "skipped", "The store does not answer.")
        return
    yield from judge_server(server)
    yield from judge_clock(server)
    try:
        yield from judge_workers()
    except StoreNewer as error:  # though the server answers
        yield Finding("workers", "failed", str(error), "", error.fix)


def check_store_then_channel_layer() -> Iterator[Finding]:
    """In this order: the layer may stand on the embedded server, which starts when the store is asked."""
    yield from check_store()
    yield from check_channel_layer()
