"""Any number of timers in one process: a hierarchical timing wheel.

A ring of 256 buckets, one for each tick of 10 ms, holds what is due within 2.56 seconds. What is due later waits in a
ring whose ticks are 256 times as long, and so on: rings are made when something first needs them, and each hands a
bucket down to the one below when its time comes near. To arm a timer is to put it into a bucket and to cancel it is to
take it out of there, whatever the number of the others: nothing of a cancelled timer stays behind.

The wheel has no thread. One driver calls ``turn`` and sleeps as long as that says; ``on_sooner`` wakes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import ceil
from threading import Lock

TICK_SECONDS = 0.010
"""A timer fires at the end of the tick that it is due in: never early, and at most so much late."""

BITS = 8
BUCKETS = 1 << BITS

Callback = Callable[[], object]

log = logging.getLogger("jobs.core.wheel")


class WheelNotRunning(RuntimeError):
    """The wheel was not started, or is stopped: nothing would ever fire."""


class _Link:
    """A place in the circle of what waits in one bucket. None: in no bucket."""

    __slots__ = ("_next", "_previous")

    _next: _Link | None
    _previous: _Link | None


class Timer(_Link):
    """A callback that waits for its moment. From ``Wheel.at`` or ``Wheel.after``."""

    __slots__ = ("_callback", "_lock", "_tick")

    def __init__(self, lock: Lock, tick: int, callback: Callback) -> None:
        self._lock = lock
        self._tick = tick
        self._callback: Callback | None = callback

    @property
    def is_pending(self) -> bool:
        """It has neither fired nor been cancelled."""
        return self._callback is not None

    def cancel(self) -> bool:
        """Whether that came in time: when True it will not fire any more. From any thread, more than once."""
        return self._take() is not None

    def _take(self) -> Callback | None:
        """The callback goes to whoever asks first: driver or canceller."""
        with self._lock:
            callback, self._callback = self._callback, None
            previous, following = self._previous, self._next
            if previous is not None and following is not None:
                previous._next, following._previous = following, previous
                self._previous = self._next = None
        return callback


class _Bucket(_Link):
    """The fixed place in the circle of timers that share a tick: they follow it in the order of their arming."""

    __slots__ = ()

    def __init__(self) -> None:
        self._previous = self._next = self

    def empty(self) -> list[Timer]:
        timers: list[Timer] = []
        link = self._next
        while isinstance(link, Timer):
            timers.append(link)
            following = link._next
            link._previous = link._next = None
            link = following
        self._previous = self._next = self
        return timers


class _Ring:
    """Its ticks are ``1 << shift`` of the wheel's. ``occupied`` has a bit for each bucket that may hold a timer."""

    __slots__ = ("buckets", "occupied", "shift")

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.buckets = [_Bucket() for _ in range(BUCKETS)]
        self.occupied = 0

    def put(self, timer: Timer) -> None:
        index = (timer._tick >> self.shift) % BUCKETS
        bucket = self.buckets[index]
        last = bucket._previous
        assert last is not None
        if last is bucket:
            self.occupied |= 1 << index
        timer._previous, timer._next = last, bucket
        last._next = bucket._previous = timer

    def take(self, tick: int) -> list[Timer]:
        """What waits in the bucket of this tick. The caller puts or fires each of them."""
        index = (tick >> self.shift) % BUCKETS
        if not self.occupied >> index & 1:
            return []
        self.occupied ^= 1 << index
        return self.buckets[index].empty()

    def next_tick(self, position: int) -> int | None:
        """The first tick after ``position`` whose bucket may hold something: a cancelled timer leaves its bit."""
        here = (position >> self.shift) % BUCKETS
        if ahead := self.occupied >> (here + 1):
            steps = _lowest_bit(ahead) + 1
        elif self.occupied:
            steps = _lowest_bit(self.occupied) + BUCKETS - here
        else:
            return None
        return ((position >> self.shift) + steps) << self.shift


class Wheel:
    """``at`` and ``after`` arm timers, from any thread; ``turn`` is for the one driver.

    ``clock``: monotonic seconds. ``on_sooner`` is called, by whoever armed it, when a timer is due before the moment
    that the driver sleeps to.
    """

    def __init__(self, clock: Callable[[], float], on_sooner: Callback = lambda: None) -> None:
        self._clock = clock
        self._on_sooner = on_sooner
        self._lock = Lock()
        self._rings = [_Ring(0)]
        self._position = 0  # the last tick that is over and done with
        self._wake_tick: int | None = None  # the driver sleeps to the end of it; None: for ever
        self._origin = 0.0
        self._trouble: str | None = "not started"

    def start(self) -> None:
        """Time begins. Once."""
        self._origin = self._clock()
        self._trouble = None

    def stop(self) -> None:
        """Time ends: what is pending will never fire."""
        with self._lock:
            self._trouble = "stopped"
            for timer in self._empty():
                timer._callback = None

    def after(self, seconds: float, callback: Callback) -> Timer:
        """Calls it that long from now."""
        return self.at(self._clock() + seconds, callback)

    def at(self, moment: float, callback: Callback) -> Timer:
        """Calls it at this moment of the clock; at once when that is past. Raises WheelNotRunning; TypeError for no
        callback. An error of the callback is logged."""
        if not callable(callback):
            raise TypeError(f"a timer needs a callback, not {callback!r}")
        timer = Timer(self._lock, ceil((moment - self._origin) / TICK_SECONDS), callback)
        with self._lock:
            if self._trouble is not None:
                raise WheelNotRunning(f"The wheel is {self._trouble}.")
            if timer._tick <= self._position:
                timer._tick = self._position + 1
            self._put(timer)
            is_sooner = self._wake_tick is None or timer._tick < self._wake_tick
            if is_sooner:
                self._wake_tick = timer._tick
        if is_sooner:
            self._on_sooner()
        return timer

    def turn(self) -> float | None:
        """Fires what is due; seconds until it wants to be called again, None when nothing is pending."""
        last = int((self._clock() - self._origin) / TICK_SECONDS)
        while (due := self._advance(last)) is not None:
            for timer in due:
                if (callback := timer._take()) is not None:
                    _call(callback)
        return self._seconds_to_sleep()

    def _empty(self) -> list[Timer]:
        return [timer for ring in self._rings for bucket in ring.buckets for timer in bucket.empty()]

    def _put(self, timer: Timer) -> None:
        distance = timer._tick - self._position
        depth = ((distance | 1).bit_length() - 1) // BITS
        while depth >= len(self._rings):
            self._rings.append(_Ring(len(self._rings) * BITS))
        self._rings[depth].put(timer)

    def _advance(self, last: int) -> list[Timer] | None:
        """Moves on to the next tick that has something to fire or to hand down; None when there is none up to ``last``.

        What lies between is skipped, however long the driver has slept.
        """
        with self._lock:
            tick = self._next_tick()
            if tick is None or tick > last:
                self._position = max(self._position, last)
                return None
            self._position = tick
            for ring in reversed(self._rings[1:]):
                if tick % (1 << ring.shift) == 0:
                    for timer in ring.take(tick):
                        self._put(timer)
            return self._rings[0].take(tick)

    def _next_tick(self) -> int | None:
        return min((tick for ring in self._rings if (tick := ring.next_tick(self._position)) is not None), default=None)

    def _seconds_to_sleep(self) -> float | None:
        with self._lock:
            self._wake_tick = tick = self._next_tick()
        return None if tick is None else max(0.0, self._origin + tick * TICK_SECONDS - self._clock())


def _lowest_bit(number: int) -> int:
    return (number & -number).bit_length() - 1


def _call(callback: Callback) -> None:
    try:
        callback()
    except Exception:
        log.exception("a timer's callback failed")
