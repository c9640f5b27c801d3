"""The caps of a pool: how many of its jobs run at once over all hosts, and how many may wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.core.job import JobSpec, Route, Unique
from jobs.engine import Engine, new_token
from jobs.engine.caps import PartitionLoad, shares
from jobs.exceptions import OutcomeUnknown, PoolFull
from jobs.store.codec.ids import new_ids
from jobs.store.keys import SettingKeys
from jobs.store.topology import Topology
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps


class TestMaxRunning:
    def test_no_lease_is_given_beyond_it(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_running=3)
        steps.enqueue_many(5)

        first, second = steps.ask(2), steps.ask(2, worker="other")
        third = steps.ask(2)

        assert (len(first.jobs), len(second.jobs), len(third.jobs)) == (2, 1, 0)
        assert third.full
        assert third.ready_left == 2

    def test_a_place_is_free_when_its_job_ends(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_running=1)
        steps.enqueue_many(2)
        steps.complete(steps.lease())

        assert len(steps.ask(5).jobs) == 1

    def test_it_can_be_changed_and_taken_away_while_jobs_run(self, steps: Steps) -> None:
        steps.enqueue_many(10)
        steps.engine.pools.configure("default", max_running=4)
        running = steps.lease_all()
        steps.engine.pools.configure("default", max_running=2)
        steps.complete(running.pop())
        assert steps.ask(5).full  # three run, two may

        steps.engine.pools.configure("default", max_running=None)

        assert len(steps.ask(9).jobs) == 6

    def test_none_may_run(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_running=0)
        steps.enqueue()

        assert steps.ask().full

    def test_nobody_is_woken_for_jobs_that_may_not_start(self, steps: Steps) -> None:
        """Woken workers would wake the next, round and round."""
        steps.engine.pools.configure("default", max_running=1)
        steps.engine.leases.wait_for_work([steps.route], 0.1)
        steps.enqueue_many(3)
        steps.engine.leases.wait_for_work([steps.route], 0.1)

        steps.lease()
        steps.ask()

        assert steps.engine.leases.wait_for_work([steps.route], 0.1) is None

    def test_a_lost_lease_counts_until_it_is_recovered_and_its_worker_must_have_noticed(
        self, steps: Steps, clock: ManualClock
    ) -> None:
        steps.engine.pools.configure("default", max_running=1)
        steps.enqueue_many(2)
        steps.lease()
        clock.advance(LEASE_MS / 1000 + 0.2)
        assert steps.engine.leases.recover(steps.route).released == 0
        assert steps.ask().full

        clock.advance(0.4)

        assert steps.engine.leases.recover(steps.route).released == 1
        assert len(steps.ask(5).jobs) == 1

    def test_without_a_cap_nothing_waits_for_that(self, steps: Steps, clock: ManualClock) -> None:
        steps.enqueue()
        steps.lease()
        clock.advance(LEASE_MS / 1000 + 0.2)

        assert steps.engine.leases.recover(steps.route).released == 1

    def test_what_holds_a_job_back_is_named(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_running=1)
        running, waiting = steps.enqueue_many(2)
        steps.lease()

        (hold,) = steps.engine.holds.of(steps.get(waiting))

        assert (hold.kind, hold.key, hold.limit, hold.holders) == ("max_running", "default", 1, [running])


class TestSharesOfPartitions:
    @pytest.fixture
    def routes(self, engine: Engine) -> list[Route]:
        keys = SettingKeys(engine.store.namespace)
        engine.store.client.hset(keys.topology, "wide", b'{"1": 3}')
        return Topology(engine.store).partitions("wide")

    def fill(self, engine: Engine, route: Route, count: int) -> None:
        engine.jobs.enqueue(JobSpec(type="t", pool="wide"), [b"{}"] * count, ids=new_ids(route, count))

    def lease(self, engine: Engine, route: Route, limit: int = 100) -> int:
        reply = engine.leases.lease(route, worker="w", token=new_token(), limit=limit, lease_ms=LEASE_MS)
        return len(reply.jobs)

    def test_they_add_up_to_the_cap(self, engine: Engine, routes: list[Route]) -> None:
        for route in routes:
            self.fill(engine, route, 10)

        engine.pools.configure("wide", max_running=5)

        assert sum(self.lease(engine, route) for route in routes) == 5

    def test_idle_shares_go_to_where_jobs_wait(self, engine: Engine, routes: list[Route]) -> None:
        engine.pools.configure("wide", max_running=2)
        self.fill(engine, routes[2], 10)
        assert self.lease(engine, routes[2]) < 2
        assert engine.caps.is_misshared("wide", 2)

        engine.caps.set("wide", 2)
        self.lease(engine, routes[2])

        assert engine.caps.load(routes[2]).running == 2
        assert not engine.caps.is_misshared("wide", 2)

    def test_a_share_that_is_in_use_is_not_given_to_others(self, engine: Engine, routes: list[Route]) -> None:
        for route in routes:
            self.fill(engine, route, 10)
        engine.pools.configure("wide", max_running=6)
        assert self.lease(engine, routes[0]) == 2

        engine.pools.configure("wide", max_running=3)
        engine.caps.set("wide", 3)

        assert sum(self.lease(engine, route) for route in routes) == 1  # two run already

    def test_what_starts_while_the_shares_are_worked_out_counts(
        self, engine: Engine, routes: list[Route], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for route in routes:
            self.fill(engine, route, 10)
        tell, started = engine.caps._tell, list[int]()

        def tell_and_lease(route: Route, share: int | None, version: int) -> PartitionLoad:
            load = tell(route, share, version)
            started.append(self.lease(engine, route))
            return load

        monkeypatch.setattr(engine.caps, "_tell", tell_and_lease)
        engine.caps.set("wide", 5)

        assert sum(started) == 5

    def test_who_is_slow_changes_no_share_any_more(self, engine: Engine, routes: list[Route]) -> None:
        engine.pools.configure("wide", max_running=9)
        engine.pools.configure("wide", max_running=3)

        engine.caps._tell(routes[0], 9, 3)  # the second step of the first of them

        assert engine.caps.load(routes[0]).share == 1

    @pytest.mark.parametrize(
        ("cap", "loads", "expected"),
        [
            (9, [(0, 0), (0, 0), (0, 0)], [3, 3, 3]),
            (2, [(0, 0), (0, 0), (0, 0)], [1, 1, 0]),
            (2, [(0, 0), (0, 0), (0, 9)], [0, 0, 2]),
            (7, [(1, 0), (0, 9), (0, 9)], [1, 3, 3]),
            (9, [(1, 0), (0, 1), (0, 2)], [3, 3, 3]),
            (0, [(1, 0), (0, 9)], [1, 0]),
        ],
    )
    def test_what_runs_stays_and_the_rest_goes_where_jobs_wait(
        self, cap: int, loads: list[tuple[int, int]], expected: list[int]
    ) -> None:
        assert shares(cap, [PartitionLoad(running, ready, None) for running, ready in loads]) == expected


class TestMaxPending:
    def test_new_work_is_refused_beyond_it_and_nothing_is_created(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_pending=3)
        steps.enqueue_many(2)

        with pytest.raises(PoolFull, match="no room for 2 new jobs: 2 jobs wait, and at most 3 may") as refused:
            steps.enqueue_many(2)

        assert refused.value.fix
        assert steps.engine.pools.get("default").ready == 2
        steps.enqueue()

    def test_what_runs_does_not_wait(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_pending=1)
        steps.enqueue()
        steps.lease()

        steps.enqueue()

    def test_all_that_waits_counts(self, steps: Steps) -> None:
        steps.enqueue_many(2)
        steps.fail(steps.lease(), "retry", delay_ms=9_000)
        steps.park(steps.lease())
        steps.enqueue(delay_ms=5_000)
        steps.engine.pools.configure("default", max_pending=3)

        with pytest.raises(PoolFull, match="3 jobs wait"):
            steps.enqueue()

    def test_retries_and_promotions_find_room(self, steps: Steps, clock: ManualClock) -> None:
        steps.engine.pools.configure("default", max_pending=1)
        steps.enqueue()
        first = steps.lease()
        steps.enqueue(delay_ms=1_000)

        assert steps.fail(first, "retry") == "retry_wait"
        clock.advance(2)
        assert len(steps.lease_all()) == 2

    def test_children_of_a_workflow_find_room(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_pending=0)

        steps.enqueue(workflow_run="run", node="child")

    def test_a_large_batch_is_taken_whole_or_not_at_all(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_pending=1_500)

        with pytest.raises(PoolFull):
            steps.enqueue_many(1_600)

        assert steps.engine.pools.get("default").ready == 0

    def test_who_finds_no_room_midway_since_others_came_is_told_how_far_it_went(
        self, steps: Steps, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps.engine.pools.configure("default", max_pending=2_500)
        run_ahead = steps.engine.store.run_ahead

        def crowded(*arguments: Any, **options: Any) -> Iterator[Any]:
            replies = run_ahead(*arguments, **options)
            yield next(replies)
            monkeypatch.undo()
            steps.enqueue_many(1_000)
            yield from replies

        monkeypatch.setattr(steps.engine.store, "run_ahead", crowded)

        with pytest.raises(OutcomeUnknown, match="At least 1,000 of 2,500 jobs were created, and then: The pool"):
            steps.enqueue_many(2_500)

    def test_a_refused_job_leaves_neither_its_id_nor_its_key_behind(self, steps: Steps) -> None:
        steps.engine.pools.configure("default", max_pending=0)
        for facts in ({"id": "mine"}, {"unique": Unique(key="k")}):
            with pytest.raises(PoolFull):
                steps.enqueue(**facts)
        steps.engine.pools.configure("default", max_pending=None)

        assert steps.enqueue(id="mine", unique=Unique(key="k")) == "mine"

    def test_a_job_that_is_there_already_is_answered_by_a_full_pool_too(self, steps: Steps) -> None:
        existing = steps.enqueue(unique=Unique(key="k"))
        steps.engine.pools.configure("default", max_pending=1)

        assert steps.enqueue(unique=Unique(key="k")) == existing

    def test_other_processes_hear_of_it_within_a_second(self, steps: Steps, engine: Engine) -> None:
        steps.enqueue()
        other = Engine(engine.store, engine.settings)
        other.pools.configure("default", max_pending=1)
        engine.pending._read_at -= 1.1  # a second later

        with pytest.raises(PoolFull):
            steps.enqueue()
