"""Timers by the number: our wheel beside what the standard library has.

Four figures at each number of pending timers: what it takes to arm one and to cancel one among as many others, what it
takes to fire one when all come due, and the memory of one. Times are CPU time of the process, so that a busy machine
does not change them; the clock of the timers is a number that the benchmark moves, so that nothing waits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from statistics import median
from typing import Any, NamedTuple, Protocol

from jobs.core.wheel import Wheel

PENDING = (1_000, 50_000, 1_000_000)
SPAN_SECONDS = 60.0
"""Timers are due at random within it, as time-outs of jobs are."""

SAMPLE = 10_000
"""As many are armed and cancelled among those that are pending."""

ROUNDS = 5
SHORT_ROUNDS = 1


class Timers(Protocol):
    """What is compared. ``after`` answers the function that cancels; ``pass_all`` fires all that is pending."""

    most: int

    def after(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]: ...

    def pass_all(self) -> None: ...

    def close(self) -> None: ...


class OnWheel:
    most = PENDING[-1]

    def __init__(self) -> None:
        self._now = 0.0
        self._wheel = Wheel(lambda: self._now)
        self._wheel.start()

    def after(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        return self._wheel.after(seconds, callback).cancel

    def pass_all(self) -> None:
        self._now += 2 * SPAN_SECONDS
        self._wheel.turn()

    def close(self) -> None:
        self._wheel.stop()


class OnHeap:
    """The heap that one would write in ten lines, with the lock that the wheel has: what is cancelled stays in it."""

    most = PENDING[-1]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heap: list[tuple[float, int, list[Any]]] = []
        self._numbers = count()
        self._now = 0.0

    def after(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        entry = [callback]
        with self._lock:
            heappush(self._heap, (self._now + seconds, next(self._numbers), entry))
        return entry.clear

    def pass_all(self) -> None:
        self._now += 2 * SPAN_SECONDS
        while self._heap and self._heap[0][0] <= self._now:
            with self._lock:
                _, _, entry = heappop(self._heap)
            if entry:
                entry[0]()

    def close(self) -> None:
        self._heap.clear()


class OnEventLoop:
    """``call_later``. It sweeps when more than half of its heap is cancelled, so its turn belongs to the price."""

    most = PENDING[-1]

    def __init__(self) -> None:
        self._now = 0.0
        self._loop = asyncio.new_event_loop()
        self._loop.time = lambda: self._now  # type: ignore[method-assign]

    def after(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        return self._loop.call_later(seconds, callback).cancel

    def pass_all(self) -> None:
        self._now += 2 * SPAN_SECONDS
        self._loop.call_later(0, self._loop.stop)
        self._loop.run_forever()

    def close(self) -> None:
        self._loop.close()


class OnThreads:
    """``threading.Timer``: a thread each. More than some thousands of them no system will give."""

    most = PENDING[0]

    def __init__(self) -> None:
        self._threads: list[threading.Timer] = []

    def after(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        timer = threading.Timer(seconds, callback)
        timer.daemon = True
        timer.start()
        self._threads.append(timer)
        return timer.cancel

    def pass_all(self) -> None:
        """Their clock cannot be moved: those that are pending are told that their time is over."""
        for timer in self._threads:
            if not timer.finished.is_set():
                timer.interval = 0
                timer.finished.set()
                timer.function()
        for timer in self._threads:
            timer.join()

    def close(self) -> None:
        for timer in self._threads:
            timer.cancel()
        for timer in self._threads:
            timer.join()


CONTENDERS: dict[str, Callable[[], Timers]] = {
    "wheel": OnWheel,
    "heapq": OnHeap,
    "asyncio.call_later": OnEventLoop,
    "threading.Timer": OnThreads,
}


class Price(NamedTuple):
    """Of one timer: nanoseconds of CPU, bytes."""

    insert: float
    cancel: float
    fire: float
    memory: float
    left: float  # bytes of one that was cancelled and whose moment has not come


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Measures and prints. There is no bar: the figures are for a decision. No server takes part."""
    prices = {
        pending: {name: _price(make, pending, SHORT_ROUNDS if short else ROUNDS) for name, make in CONTENDERS.items()}
        for pending in PENDING[: 2 if short else None]
    }
    if as_json:
        json.dump(
            {
                str(pending): {name: price and price._asdict() for name, price in row.items()}
                for pending, row in prices.items()
            },
            sys.stdout,
        )
        return True
    print("per timer: ns of CPU to insert, cancel and fire; bytes pending, and left when cancelled\n")
    for pending, row in prices.items():
        print(f"{pending:,} pending")
        for name, price in row.items():
            figures = "".join(f"{figure:>10,.0f}" for figure in price) if price else f"{'not possible':>22}"
            print(f"  {name:<20}{figures}")
    return True


def _price(make: Callable[[], Timers], pending: int, rounds: int) -> Price | None:
    if pending > make().most:
        return None
    times = [_times(make, pending) for _ in range(rounds)]
    insert, cancel, fire = (median(column) for column in zip(*times, strict=True))
    return Price(insert, cancel, fire, *_bytes(make, min(pending, 50_000)))


def _times(make: Callable[[], Timers], pending: int) -> tuple[float, float, float]:
    """Arms and cancels some among ``pending`` others, then lets all of these come due."""
    delays = _delays(pending)
    timers = make()
    for delay in delays:
        timers.after(delay, _nothing)
    sample = delays[: min(SAMPLE, pending)]
    cancels: list[Callable[[], object]] = []
    gc.collect()
    gc.disable()  # a full collection among a million objects is the price of the million, not of the timer
    try:
        insert = _cpu(lambda: cancels.extend(timers.after(delay, _nothing) for delay in sample))
        random.Random(2).shuffle(cancels)
        cancel = _cpu(lambda: [call() for call in cancels])
        fire = _cpu(timers.pass_all)
    finally:
        gc.enable()
        timers.close()
    return insert / len(sample), cancel / len(sample), fire / pending


def _bytes(make: Callable[[], Timers], pending: int) -> tuple[float, float]:
    """Of the timers alone: what their callers keep to cancel them is not counted."""
    delays = _delays(pending)
    gc.collect()
    tracemalloc.start()
    timers = make()
    before = tracemalloc.get_traced_memory()[0]
    for delay in delays:
        timers.after(delay, _nothing)
    armed = tracemalloc.get_traced_memory()[0] - before
    timers.close()
    timers = make()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for cancel in [timers.after(delay, _nothing) for delay in delays]:
        cancel()
    gc.collect()
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    timers.close()
    return armed / pending, left / pending


def _delays(pending: int) -> list[float]:
    draw = random.Random(1).random
    return [draw() * SPAN_SECONDS for _ in range(pending)]


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time_ns()
    work()
    return time.process_time_ns() - began


def _nothing() -> None:
    pass
