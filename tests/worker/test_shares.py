"""Pools that share slots get their share of the time, and none starves."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.worker.shares import Shares


def play(shares: Shares, seconds: dict[str, float], slots: int, until: float) -> Counter[str]:
    """Slots that are always refilled by the first in turn; each pool's jobs take as long. Time worked by pool."""
    used: Counter[str] = Counter(dict.fromkeys(seconds, 0.0))  # type: ignore[arg-type]
    ends: list[tuple[float, str]] = []
    now = 0.0
    while now < until:
        while len(ends) < slots:
            running = {pool: used[pool] - sum(end - now for end, of in ends if of == pool) for pool in seconds}
            pool = shares.turns(running, slots - len(ends))[0][0]
            used[pool] += seconds[pool]  # type: ignore[assignment]
            ends.append((now + seconds[pool], pool))
        ends.sort()
        now, _ = ends.pop(0)
    return used


@pytest.mark.parametrize("slots", [1, 2, 4, 7])
@pytest.mark.parametrize("seconds", [{"a": 1.0, "b": 1.0}, {"a": 10.0, "b": 0.1}, {"a": 0.1, "b": 5.0}])
def test_time_is_shared_by_weight_whatever_the_jobs_take(slots: int, seconds: dict[str, float]) -> None:
    used = play(Shares({"a": 3, "b": 1}), seconds, slots, until=400.0)

    assert used["a"] / (used["a"] + used["b"]) == pytest.approx(0.75, abs=0.05)


def test_idle_slots_are_used_by_whoever_has_work() -> None:
    shares = Shares({"a": 3, "b": 1})

    assert shares.turns({"b": 0.0}, 8) == [("b", 8)]
    assert shares.turns({}, 8) == []


def test_many_free_slots_are_split_and_everybody_gets_one() -> None:
    assert dict(Shares({"a": 3, "b": 1}).turns({"a": 0.0, "b": 0.0}, 8)) == {"a": 6, "b": 2}
    assert dict(Shares({"a": 100, "b": 1}).turns({"a": 0.0, "b": 0.0}, 4)) == {"a": 3, "b": 1}


def test_a_pool_that_was_idle_has_saved_up_nothing_and_lost_nothing() -> None:
    shares = Shares({})
    shares.turns({"a": 0.0}, 1)
    shares.turns({"a": 100.0}, 1)

    firsts: Counter[str] = Counter()
    used = {"a": 100.0, "b": 0.0}
    for _ in range(20):
        first = shares.turns(used, 1)[0][0]
        firsts[first] += 1
        used[first] += 1.0

    assert firsts == {"a": 10, "b": 10}
