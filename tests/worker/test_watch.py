"""Who is told to stop, and when. The clock is the test's; handlers are what they were told."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jobs.core.context import Context
from jobs.core.wheel import TICK_SECONDS, Wheel
from jobs.exceptions import JobCancelled, JobTimeout, LeaseLost
from jobs.worker.batch import Marks
from jobs.worker.watch import INSIST_SECONDS, Watch
from tests.worker.leased import leased


class Running:
    """Stands for an attempt: notes when it was asked, and when it was stopped with what."""

    def __init__(self, stage: Stage, timeout: float | None, *, begun: bool = True) -> None:
        self.stage = stage
        self.begun = begun
        self.lease = leased(timeout=timeout)
        self.context = Context(self.lease, {})
        self.batch: Any = self
        self.is_late = False
        self.times_out_at = stage.now + (timeout or 0)
        self.asked: list[float] = []
        self.stopped: list[tuple[float, type[BaseException]]] = []

    def is_over(self, moment: float) -> bool:
        return self.is_late

    def ask_to_stop(self, reason: BaseException) -> None:
        self.context.stop(reason)
        self.asked.append(self.stage.now)

    def stop(self, reason: BaseException) -> bool:
        if self.begun:
            self.stopped.append((self.stage.now, type(reason)))
        return self.begun


class Stage:
    def __init__(self) -> None:
        self.now = 100.0
        self.marks = Marks()
        self.running: list[Any] = []
        self.wheel = Wheel(lambda: self.now)
        self.wheel.start()
        self.watch = Watch(self.wheel, lambda: self.running, self.marks, cancel_grace=2.0)

    def run(self, timeout: float | None = None, *, begun: bool = True) -> Running:
        self.running.append(Running(self, timeout, begun=begun))
        return self.running[-1]

    def pass_seconds(self, seconds: float) -> None:
        """As the control thread does: a look every 0.2 s, and the wheel whenever it wants."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self.now += TICK_SECONDS
            self.wheel.turn()
            if round(self.now / TICK_SECONDS) % 20 == 0:
                self.watch.look()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_handler_over_time_is_stopped_once_and_on_time(stage: Stage) -> None:
    job = stage.run(timeout=1.0)
    stage.pass_seconds(5.0)
    ((moment, kind),) = job.stopped
    assert kind is JobTimeout
    assert moment == pytest.approx(101.0, abs=2 * TICK_SECONDS)


def test_a_handler_without_time_out_may_go_on(stage: Stage) -> None:
    job = stage.run(timeout=None)
    stage.pass_seconds(60.0)
    assert job.stopped == []


def test_what_has_ended_is_left_alone(stage: Stage) -> None:
    job = stage.run(timeout=1.0)
    stage.pass_seconds(0.5)
    stage.running.clear()
    stage.pass_seconds(5.0)
    assert job.stopped == []
    assert stage.wheel.turn() is None


def test_a_cancelled_handler_is_asked_at_once_and_stopped_after_the_grace(stage: Stage) -> None:
    job = stage.run(timeout=30.0)
    stage.pass_seconds(1.0)

    stage.marks.cancelled.add((job.lease.id, job.lease.token))
    stage.watch.look()
    assert job.asked == [stage.now]
    asked_at = stage.now
    stage.pass_seconds(5.0)

    ((moment, kind),) = job.stopped
    assert kind is JobCancelled
    assert moment == pytest.approx(asked_at + 2.0, abs=2 * TICK_SECONDS)
    assert job.asked == [asked_at]


def test_a_handler_that_cannot_be_interrupted_yet_is_tried_again(stage: Stage) -> None:
    job = stage.run(timeout=1.0, begun=False)
    stage.pass_seconds(1.5)
    job.begun = True
    stage.pass_seconds(1.0)
    ((moment, _),) = job.stopped
    assert 101.5 <= moment <= 101.5 + INSIST_SECONDS + 2 * TICK_SECONDS


@pytest.mark.parametrize("how", ["lost", "late"])
def test_a_handler_without_a_lease_is_asked_and_still_has_its_time_out(
    stage: Stage, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = stage.run(timeout=1.0)
    if how == "lost":
        stage.marks.lost.add((job.lease.id, job.lease.token))
    job.is_late = how == "late"

    stage.watch.look()
    assert isinstance(job.context.stop_reason, LeaseLost)
    stage.pass_seconds(5.0)

    assert [kind for _, kind in job.stopped] == [JobTimeout]
    [warning] = caplog.messages
    assert warning.startswith("The lease of job job-1 ")


def test_thousands_of_jobs_that_end_at_once_leave_no_timer(stage: Stage) -> None:
    for _ in range(2_000):
        stage.run(timeout=30.0)
        stage.running.clear()
    stage.watch.look()
    assert stage.wheel.turn() is None


def test_a_look_costs_microseconds(stage: Stage) -> None:
    for _ in range(10):
        stage.run(timeout=30.0)
    stage.watch.look()
    began = time.thread_time()
    for _ in range(100):
        stage.watch.look()
    assert time.thread_time() - began < 0.05
