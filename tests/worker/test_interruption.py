"""An exception in another thread: in the function that was meant, and nowhere else."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.worker import interruption
from jobs.worker.interruption import Interruptible
from tests.support.wait import eventually


class Enough(Exception):
    """What the tests interrupt with."""


class Interrupted:
    """Runs a function in a thread of its own, to be interrupted from the test."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.work = Interruptible()
        self.result: object = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.result = self.work.run(function, {})
        except BaseException as error:
            self.result = error

    def ended(self) -> object:
        self._thread.join(5.0)
        assert not self._thread.is_alive()
        return self.result


def spin() -> None:
    while True:
        pass


def test_a_loop_without_end_is_left() -> None:
    spinning = Interrupted(spin)
    eventually(lambda: spinning.work.interrupt(Enough))
    assert isinstance(spinning.ended(), Enough)


def test_the_result_of_a_function_that_nobody_interrupts_is_handed_on() -> None:
    assert Interruptible().run(lambda a, b: a + b, {"a": 1, "b": 2}) == 3
    with pytest.raises(KeyError):
        Interruptible().run(lambda: {}["x"], {})


def test_what_has_not_begun_and_what_is_over_is_not_interrupted() -> None:
    work = Interruptible()
    assert not work.interrupt(Enough)
    assert work.run(lambda: 1, {}) == 1
    assert not work.interrupt(Enough)


def test_only_the_first_interruption_counts() -> None:
    spinning = Interrupted(spin)
    eventually(lambda: spinning.work.interrupt(Enough))
    assert spinning.work.interrupt(ValueError)
    assert isinstance(spinning.ended(), Enough)


def test_a_function_may_catch_it_and_return() -> None:
    begun = threading.Event()

    def tidy_up() -> str:
        try:
            begun.set()
            spin()
        except Enough:
            return "tidied up"
        return ""

    careful = Interrupted(tidy_up)
    begun.wait()
    assert careful.work.interrupt(Enough)
    assert careful.ended() == "tidied up"


def test_one_that_comes_while_the_function_waits_in_c_is_met_at_the_latest_when_it_is_over() -> None:
    """It returns from there straight out of the function, so that nobody can say which was first."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> str:
        begun.set()
        go_on.wait()
        return "done"

    waiting = Interrupted(wait)
    begun.wait()
    assert waiting.work.interrupt(Enough)
    go_on.set()
    result = waiting.ended()
    assert result == "done" or isinstance(result, Enough)


@pytest.fixture
def _clumsy_interrupter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It dawdles between taking the right and using it, while threads take turns every few steps."""
    leave = interruption._leave_exception

    def dawdle(thread: int, error: type[BaseException]) -> None:
        if thread != threading.get_ident():
            time.sleep(random.random() * 0.0002)
        leave(thread, error)

    monkeypatch.setattr(interruption, "_leave_exception", dawdle)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_clumsy_interrupter")
def test_no_interruption_leaves_its_function_at_whatever_moment_it_comes() -> None:
    """Thousands of functions, most of which end just when they are interrupted; around them code that must not be."""
    current: list[Interruptible] = []
    over = threading.Event()
    outcomes: Counter[str] = Counter()
    strays: list[BaseException] = []
    draw = random.Random(4).random

    def ends_at_once() -> str:
        return "result"

    def ends_soon() -> str:
        for _ in range(int(draw() * 40_000)):
            pass
        return "result"

    def swallows() -> str:
        for _ in range(40):
            try:
                for _ in range(20):
                    len("x")
            except Enough:
                pass
        return "result"

    def fails() -> str:
        for _ in range(int(draw() * 400)):
            pass
        raise KeyError

    def work_on() -> None:
        functions = [ends_at_once, ends_soon, swallows, fails]
        try:
            for number in range(4_000):
                work = Interruptible()
                current[:] = [work]
                try:
                    outcomes[work.run(functions[number % 4], {})] += 1
                except Enough:
                    outcomes["interrupted"] += 1
                except KeyError:
                    outcomes["failed"] += 1
                for _ in range(20):  # the store is told: an exception here would be lost, or lose the job
                    len("x")
        except BaseException as error:
            strays.append(error)
        over.set()

    worker = threading.Thread(target=work_on)
    worker.start()
    while not over.is_set():
        for work in current[:]:
            work.interrupt(Enough)
        time.sleep(draw() * 0.0002)
    worker.join()

    assert strays == []
    assert outcomes.total() == 4_000
    assert outcomes["interrupted"] > 20
