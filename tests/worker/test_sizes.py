"""Which pools a fetcher serves, with how many slots, and who sets that."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from jobs.store.keys import SettingKeys
from tests.support.wait import eventually
from tests.worker.conftest import ROUTE, Gate, Parts, StartFetcher


def test_a_pool_that_an_emptied_store_has_forgotten_is_entered_anew(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    gate.opened.set()
    fetcher = start_fetcher()
    ids = parts.enqueue(count=1)
    eventually(lambda: parts.states(ids) == {"succeeded"})
    store = parts.engine.store

    store.client.delete(SettingKeys(store.namespace).topology)
    fetcher.reconsider()

    eventually(lambda: ROUTE in parts.engine.topology.partitions("default", fresh=True))


def test_slots_follow_what_people_set_as_soon_as_it_is_heard_of(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.enqueue(count=20)
    fetcher = start_fetcher(concurrency=None)
    eventually(lambda: len(gate.begun) == 10)

    parts.engine.pools.configure("default", slots=12)
    fetcher.reconsider()
    eventually(lambda: len(gate.begun) == 12)

    parts.engine.pools.configure("default", slots=0)
    fetcher.reconsider()
    eventually(lambda: fetcher.pools[0].size == 0)
    gate.opened.set()
    eventually(lambda: fetcher.in_hand == 0)
    time.sleep(0.1)
    assert len(gate.begun) == 12


def test_what_waits_for_slots_that_are_gone_goes_back_also_where_nobody_told_of_it(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.worker.line.STALL_SECONDS", 60.0)
    gate.opened.set()
    fetcher = start_fetcher(concurrency=None)
    shorts = parts.enqueue(count=500)
    eventually(lambda: parts.states(shorts[-1:]) == {"succeeded"})
    gate.opened.clear()
    longs = parts.enqueue(count=50)
    eventually(lambda: gate.begun[-1] in longs and fetcher.pools[0].waiting)

    parts.engine.pools.configure("default", slots=0)
    fetcher.look()

    eventually(lambda: parts.states([job_id for job_id in longs if job_id not in gate.begun]) == {"ready"})


def test_pools_come_into_being_by_settings_and_by_use(parts: Parts, gate: Gate, start_fetcher: StartFetcher) -> None:
    """A host without names serves all there are, those too that nobody has used yet."""
    parts.engine.settings = replace(parts.engine.settings, pools={"named": 3})
    fetcher = start_fetcher(pools=(), concurrency=None)

    def slots() -> dict[str, int]:
        return {pool.name: pool.size for pool in fetcher.pools}

    eventually(lambda: slots().get("named") == 3)
    assert parts.engine.topology.has("named")

    parts.enqueue(pool="used")
    fetcher.look()
    eventually(lambda: slots().get("used") == parts.engine.settings.slots)
    eventually(lambda: gate.begun)


def test_a_number_set_while_the_host_runs_beats_its_command_line(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.engine.pools.configure("default", slots=5)
    parts.enqueue(count=20)
    fetcher = start_fetcher(concurrency=3, configured={"default": 5})
    eventually(lambda: len(gate.begun) == 3)

    parts.engine.pools.configure("default", slots=6)
    fetcher.reconsider()

    eventually(lambda: len(gate.begun) == 6)


def test_pools_share_slots_by_weight_and_use_what_others_leave(
    parts: Parts, gate: Gate, start_fetcher: StartFetcher
) -> None:
    parts.enqueue(count=20)
    of_other = set(parts.enqueue(count=20, pool="other"))

    fetcher = start_fetcher(
        pools=("default", "other"), concurrency=None, shared_slots=4, weights={"default": 3, "other": 1}
    )

    eventually(lambda: len(gate.begun) == 4)
    time.sleep(0.1)
    assert (fetcher.in_hand, len(of_other & set(gate.begun))) == (4, 1)
    parts.engine.pools.configure("other", slots=0)
    fetcher.reconsider()
    eventually(lambda: {pool.name: pool.size for pool in fetcher.pools} == {"default": 4, "other": 0})
    gate.opened.set()
    eventually(lambda: len(gate.begun) == 21)
    assert len(of_other & set(gate.begun)) == 1, "a pool that is held does not slow the other"
