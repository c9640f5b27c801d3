"""A producer: enqueues jobs of all kinds and writes down what it asked for and what it was told.

``python -m tests.faults.producer --count N --seed S [--mix NAME] [--rate PER_SECOND]``
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import django

from tests.faults.history import Phase

Payloads = list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="jobs a second; 0 = as fast as it goes")
    parser.add_argument("--mix", choices=sorted(MIXES), default="everything")
    options = parser.parse_args()
    django.setup()
    Producer(options.seed, options.rate).produce(options.count, MIXES[options.mix])


class Producer:
    """Every wish has a key of its own, which travels in the payload to the handler."""

    def __init__(self, seed: int, rate: float = 0.0) -> None:
        from tests.faults.workload import jobs, observe

        self.jobs = jobs
        self.history = observe.history()
        self.random = random.Random(seed)
        self.rate = rate
        self.made = 0

    def produce(self, count: int, mix: Callable[[Producer, int], None]) -> None:
        began = time.monotonic()
        while self.made < count:
            mix(self, min(20, count - self.made))
            if self.rate:
                time.sleep(max(0.0, began + self.made / self.rate - time.monotonic()))

    def everything(self, count: int) -> None:
        """The mix of the long runs: mostly short jobs, some slow, failing, doomed, delayed, named, cancelled."""
        kind = self.random.random()
        if kind < 0.55:
            self.many(self.jobs.nothing, count)
        elif kind < 0.65:
            self.many(self.jobs.work, count, seconds=self.random.choice((0.01, 0.1, 0.5)))
        elif kind < 0.75:
            self.many(self.jobs.work_async, count, seconds=self.random.choice((0.01, 0.1, 0.5)))
        elif kind < 0.83:
            self.many(self.jobs.flaky, count, failures=self.random.randint(1, 4))
        elif kind < 0.9:
            delay = self.random.choice((0.05, 0.5, 2.0))
            self.many(self.jobs.nothing, count, delay=delay, priority=self.random.choice((-5, 0, 5)))
        elif kind < 0.92:
            self.many(self.jobs.doomed, 1)
        elif kind < 0.96:
            self.one_by_id()
        else:
            self.one_cancelled()

    def nothing(self, count: int) -> None:
        self.many(self.jobs.nothing, count)

    def singly(self, count: int) -> None:
        """A call for each job, so that each has an answer to lose."""
        for _ in range(count):
            self.many(self.jobs.nothing, 1)

    def work(self, count: int) -> None:
        self.many(self.jobs.work, count, seconds=0.02)

    def slow(self, count: int) -> None:
        """Long enough that a host which is killed has always begun some."""
        self.many(self.jobs.work, count, seconds=0.5)

    def one_by_id(self) -> None:
        """A caller's id makes an enqueue repeatable: on an unknown outcome it is simply asked for again."""
        key = self._new_key()
        job_id = f"wish {key}"
        for _ in range(10):
            if self._enqueue(self.jobs.nothing, key, {}, {"id": job_id}) != "unknown":
                return

    def one_cancelled(self) -> None:
        """Delayed for a moment and cancelled about when it is due."""
        from jobs.api import cancel
        from jobs.exceptions import SchedulerError, WrongState

        key = self._new_key()
        job_id = f"wish {key}"
        if self._enqueue(self.jobs.nothing, key, {}, {"id": job_id, "delay": 0.05}) != "ok":
            return
        time.sleep(self.random.uniform(0, 0.1))
        op = self.history.write("cancel", "invoke", job=job_id)
        try:
            job = cancel(job_id)
        except WrongState:
            self.history.write("cancel", "refused", op)
        except SchedulerError as error:
            self.history.write("cancel", "unknown", op, outcome=error.code)
        else:
            # Read back after the cancel: a leased job was only asked to stop, and may have ended since.
            outcome = "cancelled" if job.state == "cancelled" and job.attempt == 0 else "leased"
            self.history.write("cancel", "ok", op, outcome=outcome)

    def many(self, job_type: Any, count: int, *, delay: float = 0.0, priority: int = 0, **payload: Any) -> None:
        keys = [self._new_key() for _ in range(count)]
        due_ns = time.monotonic_ns() + int(delay * 1e9) if delay else None
        ops = [self.history.write("enqueue", "invoke", key=key, due_ns=due_ns) for key in keys]
        options: dict[str, Any] = {"delay": delay, "priority": priority}
        try:
            handles: Sequence[Any] = job_type.using(**options).enqueue_many([{"key": key, **payload} for key in keys])
        except Exception as error:
            for op in ops:
                self.history.write("enqueue", _phase(error), op, outcome=type(error).__name__)
        else:
            for op, handle in zip(ops, handles, strict=True):
                self.history.write("enqueue", "ok", op, job=handle.id)

    def _enqueue(self, job_type: Any, key: str, payload: dict[str, Any], options: dict[str, Any]) -> str:
        from jobs.exceptions import DuplicateJob

        due_ns = time.monotonic_ns() + int(options.get("delay", 0) * 1e9)
        op = self.history.write("enqueue", "invoke", key=key, job=options["id"], due_ns=due_ns)
        try:
            handle = job_type.using(**options).enqueue(key=key, **payload)
        except DuplicateJob as error:  # ours: nobody else uses this id
            self.history.write("enqueue", "ok", op, job=error.job_id, outcome="existing")
        except Exception as error:
            phase = _phase(error)
            self.history.write("enqueue", phase, op, outcome=type(error).__name__)
            return phase
        else:
            self.history.write("enqueue", "ok", op, job=handle.id)
        return "ok"

    def _new_key(self) -> str:
        self.made += 1
        return f"{os.environ.get('FAULTS_PROC', 'producer')}:{self.made}"


def _phase(error: Exception) -> Phase:
    """Refused for certain, or nobody knows."""
    from jobs.exceptions import StoreUnavailable

    return "refused" if isinstance(error, StoreUnavailable) else "unknown"


MIXES: dict[str, Callable[[Producer, int], None]] = {
    "everything": Producer.everything,
    "nothing": Producer.nothing,
    "singly": Producer.singly,
    "slow": Producer.slow,
    "work": Producer.work,
}

if __name__ == "__main__":
    main()
