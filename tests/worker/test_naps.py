"""Partitions that have nothing are left alone: each for its own reason, all of the empty ones by one question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jobs.core.job import Route
from jobs.engine import LeaseReply
from jobs.worker import naps
from jobs.worker.naps import Naps

LONGEST = 20.0
A, B, C = (Route(pool, 1, 0) for pool in "abc")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(naps, "monotonic", clock)
    return clock


def reply(*, left: int = 0, due_in: int | None = None, paused: bool = False, full: bool = False) -> LeaseReply:
    return LeaseReply([], 0, 5_000, None if due_in is None else 5_000 + due_in, left, paused=paused, full=full)


class Question:
    """Asked about partitions; ``answer``: whether all of them are empty."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.about: list[list[Route]] = []

    def __call__(self, routes: Sequence[Route]) -> bool:
        self.about.append(sorted(routes))
        return self.answer


def test_an_empty_partition_sleeps_for_long_and_one_with_more_not_at_all(clock: Clock) -> None:
    sleeping = Naps(LONGEST)
    sleeping.note(A, reply(), found=False)
    sleeping.note(B, reply(left=3), found=True)

    assert sleeping.is_asleep(A)
    assert not sleeping.is_asleep(B)
    assert sleeping.seconds_until_any([A]) == LONGEST
    assert not sleeping.are_known([A, B])


def test_one_in_which_something_comes_due_sleeps_until_then(clock: Clock) -> None:
    sleeping = Naps(LONGEST)
    sleeping.note(A, reply(due_in=3_000), found=False)

    assert sleeping.seconds_until_any([A]) == pytest.approx(3.0, abs=0.01)


def test_all_empty_ones_are_asked_about_at_once_and_sleep_on(clock: Clock) -> None:
    sleeping, ask = Naps(LONGEST), Question()
    sleeping.note(A, reply(), found=False)
    clock.now += 5
    sleeping.note(B, reply(), found=True)
    clock.now += LONGEST - 6
    sleeping.prolong(ask)
    assert ask.about == [], "nobody's nap is over"

    clock.now += 1
    sleeping.prolong(ask)
    sleeping.prolong(ask)

    assert ask.about == [[A, B]]
    assert sleeping.seconds_until_any([A, B]) == LONGEST


def test_where_something_is_each_is_asked_by_itself(clock: Clock) -> None:
    sleeping, ask = Naps(LONGEST), Question(answer=False)
    sleeping.note(A, reply(), found=False)
    clock.now += LONGEST

    for _ in range(3):  # a pool without room is not leased from, and the question is not put again
        sleeping.prolong(ask)

    assert ask.about == [[A]]
    assert not sleeping.is_asleep(A)


@pytest.mark.parametrize("told", [reply(paused=True), reply(full=True), reply(left=2), reply(due_in=60_000)])
def test_one_that_sleeps_for_another_reason_is_not_passed_over(clock: Clock, told: LeaseReply) -> None:
    sleeping, ask = Naps(LONGEST), Question()
    sleeping.note(A, told, found=False)
    clock.now += LONGEST

    sleeping.prolong(ask)

    assert ask.about == []
    assert not sleeping.is_asleep(A)


def test_who_is_woken_is_not_asked_about(clock: Clock) -> None:
    sleeping, ask = Naps(LONGEST), Question()
    for route in (A, B, C):
        sleeping.note(route, reply(), found=False)
    clock.now += LONGEST
    sleeping.wake(C)

    sleeping.prolong(ask)

    assert ask.about == [[A, B]]
    assert not sleeping.is_asleep(C)
    assert not sleeping.are_known([A, B, C])


def test_a_reason_that_is_gone_is_forgotten(clock: Clock) -> None:
    sleeping = Naps(LONGEST)
    sleeping.note(A, reply(paused=True), found=False)
    assert sleeping.paused == {A}
    sleeping.note(A, reply(full=True), found=False)

    assert (sleeping.paused, sleeping.full) == (set(), {A})
    assert sleeping.seconds_until_any([A]) == naps.FULL_SECONDS
