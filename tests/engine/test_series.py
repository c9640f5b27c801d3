"""What happened and when: totals that only grow, series that stay as long as they should."""

from __future__ import annotations

import pytest

from jobs.core.job import Route
from jobs.engine import Completion, Engine
from jobs.engine.series import ENTRIES, KEPT_LIVE
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything

DAY = 86_400


def run(steps: Steps, clock: ManualClock, *, wait: float = 0, run: float = 0, type: str = "t") -> None:
    """One job that waits and runs for so many seconds."""
    steps.enqueue(type=type)
    clock.advance(wait)
    job = steps.lease()
    began = steps.now_ms()
    clock.advance(run)
    steps.engine.leases.complete(steps.route, [Completion(job.id, job.token, job.type, began)])


def fold(engine: Engine) -> None:
    for route in engine.topology.partitions():
        engine.upkeep.fold_figures(route)


def test_waiting_and_running_time_are_told_by_quantiles(steps: Steps, clock: ManualClock) -> None:
    for number in range(1, 101):
        run(steps, clock, wait=number / 100, run=number / 1_000)

    told = steps.engine.stats.durations("default", 60)

    assert told["wait"]["count"] == told["run"]["count"] == 100
    assert [told["wait"][name] for name in ("p50", "p95", "p99")] == pytest.approx([0.5, 0.95, 0.99], rel=0.044)
    assert [told["run"][name] for name in ("p50", "p95", "p99")] == pytest.approx([0.05, 0.095, 0.099], rel=0.044)
    assert told["run"]["mean"] == pytest.approx(0.0505)


def test_types_and_pools_are_told_apart(engine: Engine, clock: ManualClock) -> None:
    run(Steps(engine, "a"), clock, run=1, type="mail")
    run(Steps(engine, "a"), clock, run=2, type="report")
    run(Steps(engine, "b"), clock, run=4, type="mail")

    stats = engine.stats
    assert stats.durations("a", type="mail")["run"]["mean"] == 1.0
    assert stats.durations(type="mail")["run"]["mean"] == 2.5
    assert {pool: sorted(types) for pool, types in stats.by_pool_and_type().items()} == {
        "a": ["mail", "report"],
        "b": ["mail"],
    }


def test_totals_are_the_same_before_and_after_they_are_folded(steps: Steps, clock: ManualClock) -> None:
    run(steps, clock, run=3)
    steps.bury()
    before = steps.engine.stats.types()

    for _ in range(KEPT_LIVE + 2):
        clock.advance(10)
        assert steps.engine.stats.types() == before
    keys = everything(steps.engine.store)
    assert any(key.endswith(":seconds") for key in keys)
    assert not any(":live:" in key for key in keys)


def test_totals_grow_by_what_is_counted_and_never_shrink(steps: Steps, clock: ManualClock) -> None:
    seen = [0]
    for _ in range(20):
        run(steps, clock)
        clock.advance(7)
        seen.append(steps.engine.stats.types()["t"]["succeeded"])

    assert seen == list(range(21))


def test_a_day_is_told_in_10_seconds_and_a_month_in_5_minutes(steps: Steps, clock: ManualClock) -> None:
    run(steps, clock)
    clock.advance(2 * DAY)
    run(steps, clock)
    clock.advance(DAY / 2)
    run(steps, clock)
    clock.advance(400)
    fold(steps.engine)

    stats = steps.engine.stats
    assert [point.seconds for point in stats.points("default", 24 * 60, step=10)] == [10, 10]
    assert [point.seconds for point in stats.points("default", 30 * 24 * 60)] == [300, 300, 300]
    clock.advance(28 * DAY)
    fold(steps.engine)
    assert sum(point.figures.count("succeeded") for point in stats.points("default", 30 * 24 * 60)) == 2


def test_what_is_not_folded_yet_is_told_too(steps: Steps, clock: ManualClock) -> None:
    for _ in range(40):
        run(steps, clock)
        clock.advance(20)

    for minutes, step in ((20, 10), (20, 300)):
        points = steps.engine.stats.points("default", minutes, step=step)
        assert sum(point.figures.count("succeeded") for point in points) == 40
        assert points == sorted(points, key=lambda point: point.at)


def test_a_long_series_comes_page_by_page(steps: Steps, clock: ManualClock) -> None:
    for _ in range(ENTRIES + 5):
        steps.enqueue()
        clock.advance(10)

    points = steps.engine.stats.points("default", 24 * 60, step=10)

    assert [point.figures.count("enqueued") for point in points] == [1] * (ENTRIES + 5)


def test_partitions_of_a_pool_are_added_up(engine: Engine, clock: ManualClock) -> None:
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:topology", "wide", b'{"1":2}')
    for partition in range(2):
        engine.series.count(Route("wide", 1, partition), "duplicates", "t", 2)

    [point] = engine.stats.points("wide")
    assert point.figures.count("duplicates") == 4


def test_figures_are_kept_small_however_much_happens(steps: Steps, clock: ManualClock) -> None:
    """Half an hour of a busy type: about a kilobyte a minute."""
    client = steps.engine.store.client
    for _ in range(180):
        steps.enqueue_many(5)
        clock.advance(3)
        for job in steps.lease_all():
            steps.complete(job)
        clock.advance(7)
    fold(steps.engine)

    bytes_used = sum(
        client.memory_usage(key, samples=0)
        for key in everything(steps.engine.store)
        if key.endswith(("seconds", "minutes"))
    )
    assert bytes_used < 30 * 1_500
