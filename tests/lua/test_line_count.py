"""line_count.lua: ready jobs of a partition, wherever they wait."""

from __future__ import annotations

from jobs.engine import Engine
from jobs.store.keys import partition_keys
from tests.support.steps import Steps


def test_jobs_in_line_and_set_aside_are_counted_and_no_others(engine: Engine) -> None:
    steps = Steps(engine)
    steps.enqueue_many(3)
    steps.enqueue(delay_ms=60_000)
    steps.lease()
    steps.park(steps.lease())
    keys = partition_keys(engine.store.namespace, steps.route)
    engine.store.client.zadd(keys.throttled, {"held back": 1})

    assert engine.store.run("line_count", keys) == 3
