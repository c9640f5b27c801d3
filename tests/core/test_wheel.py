"""Timers: each fires once, not early and hardly late, and a cancelled one not at all.

Numbers of cases, as AC-82, are those of the collection that the rule of autoscaling is measured by as well.
"""

from __future__ import annotations

import gc
import logging
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.wheel import BUCKETS, TICK_SECONDS, Timer, Wheel, WheelNotRunning

HOUR = 3600.0
FIRST_RING_SECONDS = BUCKETS * TICK_SECONDS


class Drive:
    """A wheel, its driver and their clock: ``to`` lets time pass as a driver would that obeys what ``turn`` says."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.turns = 0
        self.fired: list[tuple[object, float]] = []
        self.wheel = Wheel(lambda: self.now)
        self.wheel.start()

    def arm(self, seconds: float, name: object = "timer") -> Timer:
        return self.wheel.after(seconds, lambda: self.fired.append((name, self.now)))

    def to(self, seconds: float) -> list[tuple[object, float]]:
        """What has fired by ``seconds`` from now, and when."""
        end = self.now + seconds
        while True:
            self.turns += 1
            pause = self.wheel.turn()
            if pause is None or self.now + pause > end:
                break
            self.now += max(pause, 1e-6)
        self.now = end
        self.wheel.turn()
        return self.fired


@pytest.fixture
def drive() -> Drive:
    return Drive()


class TestFiring:
    def test_each_of_fifty_timers_fires_within_a_tick_of_its_moment(self, drive: Drive) -> None:
        """AC-82."""
        start = drive.now
        delays = [0.020 + 0.008 * number for number in range(50)]
        random.Random(3).shuffle(delays)
        for delay in delays:
            drive.arm(delay, delay)

        fired = drive.to(0.5)

        assert sorted(delays) == sorted(delay for delay, _ in fired)
        for delay, at in fired:
            assert 0 <= at - start - delay <= TICK_SECONDS + 2e-6  # ours and rounding

    def test_a_moment_in_the_past_fires_with_the_next_tick(self, drive: Drive) -> None:
        """AC-86."""
        drive.to(2 * HOUR)
        drive.arm(-HOUR)
        assert len(drive.to(TICK_SECONDS * 2)) == 1

    @pytest.mark.parametrize("seconds", [FIRST_RING_SECONDS + 1, FIRST_RING_SECONDS * BUCKETS + 1, 30 * 24 * HOUR])
    def test_a_delay_beyond_a_ring_is_handed_down_and_fires_once(self, drive: Drive, seconds: float) -> None:
        """AC-85."""
        drive.arm(seconds)

        assert drive.to(seconds - 2 * TICK_SECONDS) == []
        assert len(drive.to(4 * TICK_SECONDS)) == 1
        assert len(drive.to(seconds)) == 1

    def test_timers_of_one_tick_fire_in_the_order_of_their_arming(self, drive: Drive) -> None:
        for name in range(20):
            drive.arm(5.0, name)
        assert [name for name, _ in drive.to(6.0)] == list(range(20))

    def test_a_driver_that_slept_for_long_fires_all_that_came_due_in_order(self, drive: Drive) -> None:
        for seconds in (700.0, 0.5, 3.0, 69.0):
            drive.arm(seconds, seconds)
        drive.now += HOUR
        drive.wheel.turn()
        assert [name for name, _ in drive.fired] == [0.5, 3.0, 69.0, 700.0]

    def test_a_callback_may_arm_and_cancel(self, drive: Drive) -> None:
        other = drive.arm(0.2, "other")
        drive.wheel.after(0.1, lambda: (other.cancel(), drive.arm(0.1, "next")))
        assert [name for name, _ in drive.to(1.0)] == ["next"]

    def test_a_callback_that_fails_is_logged_and_the_others_fire(
        self, drive: Drive, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise ValueError("no luck")

        drive.wheel.after(0.1, fail)
        drive.arm(0.1)
        with caplog.at_level(logging.ERROR):
            assert len(drive.to(1.0)) == 1
        assert "no luck" in caplog.text

    @given(st.lists(st.tuples(st.floats(-1.0, 2_000_000.0), st.floats(0.0, 10_000.0), st.booleans()), max_size=40))
    def test_whatever_is_armed_fires_once_in_its_tick_unless_it_was_cancelled(
        self, plan: list[tuple[float, float, bool]]
    ) -> None:
        drive = Drive()
        expected: dict[int, float] = {}
        for number, (seconds, pause, cancelled) in enumerate(plan):
            timer = drive.arm(seconds, number)
            expected[number] = drive.now + max(0.0, seconds)
            if cancelled and timer.cancel():
                del expected[number]
            drive.to(pause)
        drive.to(2_000_001.0)

        assert sorted(number for number, _ in drive.fired) == sorted(expected)
        for number, at in drive.fired:
            assert -1e-6 <= at - expected[number] <= TICK_SECONDS + 2e-6  # ours and rounding


class TestCancelling:
    def test_a_timer_that_is_cancelled_in_time_does_not_fire(self, drive: Drive) -> None:
        """AC-83."""
        timer = drive.arm(0.050)
        drive.to(0.010)

        assert timer.cancel()
        assert drive.to(0.150) == []

    def test_cancelling_says_whether_it_came_in_time(self, drive: Drive) -> None:
        timer = drive.arm(0.050)
        assert timer.is_pending
        drive.to(0.150)
        assert not timer.is_pending
        assert not timer.cancel()

    def test_the_second_cancel_has_nothing_to_do(self, drive: Drive) -> None:
        timer = drive.arm(0.050)
        assert timer.cancel()
        assert not timer.cancel()

    def test_a_timer_that_its_neighbour_cancels_in_the_same_tick_does_not_fire(self, drive: Drive) -> None:
        timers: list[Timer] = []
        drive.wheel.after(0.1, lambda: timers[0].cancel())
        timers.append(drive.arm(0.1))
        drive.arm(0.1, "third")
        assert [name for name, _ in drive.to(1.0)] == ["third"]

    @pytest.mark.parametrize("seconds", [0.5, 60.0, 30 * 24 * HOUR])
    def test_nothing_of_a_cancelled_timer_stays_behind(self, drive: Drive, seconds: float) -> None:
        class Callback:
            def __call__(self) -> None: ...

        callback = Callback()
        neighbours = [drive.arm(seconds), drive.wheel.after(seconds, callback), drive.arm(seconds)]
        traces: list[weakref.ref[Any]] = [weakref.ref(callback)]
        neighbours.pop(1).cancel()
        del callback
        gc.collect()
        assert [trace() for trace in traces] == [None]
        assert len(drive.to(2 * seconds)) == 2

    def test_a_timer_ends_up_either_cancelled_or_fired_when_both_are_tried_at_once(self) -> None:
        """The clock does not stand still here: the driver turns while another thread cancels."""
        now = [0.0]
        wheel = Wheel(lambda: now[0])
        wheel.start()
        fired: list[int] = []
        timers = [
            wheel.after(0.01 * (number % 50), lambda number=number: fired.append(number)) for number in range(5000)
        ]
        cancelled: list[int] = []

        def cancel_all() -> None:
            cancelled.extend(number for number, timer in enumerate(timers) if timer.cancel())

        canceller = threading.Thread(target=cancel_all)
        canceller.start()
        for _ in range(60):
            now[0] += TICK_SECONDS
            wheel.turn()
        canceller.join()
        wheel.turn()

        assert sorted(fired + cancelled) == list(range(5000))


class TestTheDriver:
    def test_it_is_told_how_long_it_may_sleep(self, drive: Drive) -> None:
        assert drive.wheel.turn() is None
        drive.arm(0.5)
        assert drive.wheel.turn() == pytest.approx(0.5, abs=TICK_SECONDS)

    def test_it_wakes_for_what_fires_and_for_what_is_handed_down_and_for_nothing_else(self, drive: Drive) -> None:
        drive.arm(HOUR)
        drive.to(2 * HOUR)
        assert drive.turns <= 5

    def test_it_is_woken_for_what_is_due_before_it_wakes_and_for_nothing_else(self) -> None:
        now, rung = [0.0], []
        wheel = Wheel(lambda: now[0], on_sooner=lambda: rung.append(now[0]))
        wheel.start()
        wheel.turn()

        wheel.after(10.0, print)
        assert len(rung) == 1
        wheel.after(20.0, print)
        assert len(rung) == 1
        wheel.after(5.0, print)
        assert len(rung) == 2

    def test_ten_thousand_timers_need_no_thread(self, drive: Drive) -> None:
        """AC-87."""
        before = threading.active_count()
        for number in range(10_000):
            drive.arm(HOUR + number)
        drive.to(1.0)
        assert threading.active_count() == before


class TestMisuse:
    def test_arming_before_the_start_is_an_error(self) -> None:
        """AC-89."""
        with pytest.raises(WheelNotRunning, match="not started"):
            Wheel(lambda: 0.0).after(1.0, print)

    def test_arming_after_the_stop_is_an_error(self, drive: Drive) -> None:
        """AC-90."""
        drive.wheel.stop()
        with pytest.raises(WheelNotRunning, match="stopped"):
            drive.arm(1.0)

    def test_what_was_pending_at_the_stop_never_fires(self, drive: Drive) -> None:
        timer = drive.arm(1.0)
        drive.wheel.stop()
        assert not timer.is_pending
        assert drive.to(2.0) == []

    @pytest.mark.parametrize("callback", [None, 7])
    def test_a_timer_without_a_callback_is_an_error(self, drive: Drive, callback: Callable[[], object]) -> None:
        """AC-91."""
        with pytest.raises(TypeError, match="needs a callback"):
            drive.wheel.after(1.0, callback)
