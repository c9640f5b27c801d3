from __future__ import annotations

import logging
import threading
import time
from itertools import count

import pytest

from jobs.exceptions import StoreUnavailable
from jobs.runtime.loop import Backoff, Loop
from tests.support.wait import eventually


class TestBackoff:
    def test_waits_grow_to_the_cap_and_stay_between_half_and_whole_of_their_step(self) -> None:
        backoff = Backoff(first=0.1, cap=1.0)

        waits = [backoff.next_seconds() for _ in range(2000)]

        for wait, step in zip(waits, [0.1, 0.2, 0.4, 0.8] + [1.0] * 1996, strict=True):
            assert step / 2 <= wait <= step

    def test_after_a_success_it_begins_anew(self) -> None:
        backoff = Backoff(first=0.1, cap=10.0)
        for _ in range(8):
            backoff.next_seconds()

        backoff.reset()

        assert backoff.next_seconds() <= 0.1


class TestLoop:
    def test_ticks_again_after_the_time_that_the_tick_asked_for(self) -> None:
        moments: list[float] = []

        def tick() -> float:
            moments.append(time.monotonic())
            return 0.05

        loop = Loop("test", tick)
        loop.start()
        eventually(lambda: len(moments) >= 3)
        loop.stop(1.0)

        assert moments[1] - moments[0] >= 0.05

    def test_a_nudge_cuts_the_sleep_short(self) -> None:
        ticks = count()
        seen: list[int] = []

        def tick() -> float:
            seen.append(next(ticks))
            return 60.0

        loop = Loop("test", tick)
        loop.start()
        eventually(lambda: len(seen) == 1)
        loop.nudge()
        eventually(lambda: len(seen) == 2)
        loop.stop(1.0)

        assert not loop.is_alive()

    def test_a_nudge_is_never_taken_for_the_end_of_a_sleep_however_near_it_comes(self) -> None:
        nudged = [0]

        def tick() -> float:
            nudged[0] += loop.was_nudged
            return 0.0005

        loop = Loop("test", tick)
        loop.start()
        for _ in range(1000):
            seen = nudged[0]
            loop.nudge()
            eventually(lambda seen=seen: nudged[0] > seen, within=5.0, every=0.0003)
        loop.stop(1.0)

    def test_stop_waits_for_the_tick_that_is_under_way(self) -> None:
        begun, finished = threading.Event(), threading.Event()

        def tick() -> float:
            begun.set()
            time.sleep(0.1)
            finished.set()
            return 60.0

        loop = Loop("test", tick)
        loop.start()
        begun.wait()
        loop.stop(60.0)

        assert finished.is_set()

    def test_outlives_every_error_says_what_is_wrong_and_that_it_is_over(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        errors: list[BaseException] = [*[StoreUnavailable("away")] * 3, ValueError("a bug"), SystemExit("of a hook")]
        troubles: list[str | None] = []

        def tick() -> float:
            troubles.append(loop.trouble)
            if errors:
                raise errors.pop(0)
            return 60.0

        loop = Loop("test", tick, backoff=Backoff(first=0.001, cap=0.001))
        with caplog.at_level(logging.INFO):
            loop.start()
            eventually(lambda: len(troubles) == 6 and loop.trouble is None)
        loop.stop(1.0)

        assert troubles[1:] == [*["StoreUnavailable: away"] * 3, "ValueError: a bug", "SystemExit: of a hook"]
        away, bug, _, over = caplog.records
        assert away.getMessage() == "test: away"  # once for the outage
        assert away.exc_info is None or away.exc_info is False or away.exc_info[0] is None
        assert bug.exc_info is not None
        assert "works again" in over.getMessage()
