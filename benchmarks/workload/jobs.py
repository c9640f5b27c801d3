"""Job types that do nothing, so that what is measured is everything else."""

from __future__ import annotations

import os
import time

from jobs import job

POOL = "benchmark"


@job("benchmark.nothing", pool=POOL)
def nothing() -> None:
    """The no-op of the drain."""


@job("benchmark.count")
def count(number: int) -> dict[str, int]:
    """Has a small payload and a small result."""
    return {"rows": 12345 + number % 10}


@job("benchmark.limited", pool=POOL, concurrency=1_000_000)
def limited() -> None:
    """The same with a place for each that runs, of which there are enough."""


@job("benchmark.rated", pool=POOL, rate="100000000/h")
def rated() -> None:
    """The same with a start for each, of which there are enough."""


@job("benchmark.stamp", pool=POOL)
def stamp(sent_ns: int) -> None:
    """Writes the nanoseconds from before its enqueue to now, the first line of its handler, as one line."""
    late = time.monotonic_ns() - sent_ns
    descriptor = os.open(os.environ["BENCHMARK_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, b"%d\n" % late)
    os.close(descriptor)
