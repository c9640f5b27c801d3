"""Verbs over all jobs that match a filter."""

from __future__ import annotations

import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs import JobFilter, discard_matching, enqueue, get_job, resubmit_matching
from jobs.api import acount_matching, adiscard_matching, aresubmit_matching, count_matching, enqueue_many
from jobs.api.matching import FAILURES_KEPT
from jobs.core.states import JobState
from jobs.engine import Engine
from jobs.exceptions import JobNotFound, OptionInvalid, PayloadInvalid
from jobs.testing import drain

DEAD = JobFilter(states=(JobState.DEAD,))


def die(number: int, **options: Any) -> list[str]:
    handles = enqueue_many("math.divide", [{"a": n, "b": 0} for n in range(number)], max_retries=0, **options)
    drain()
    return [handle.id for handle in handles]


class TestCounting:
    def test_states_and_pools_are_counted(self) -> None:
        die(3)
        enqueue("mail.send", {"to": "Ann"})

        assert count_matching(DEAD) == 3
        assert count_matching(JobFilter()) == 4
        assert count_matching(JobFilter(pool="critical")) == 1

    def test_any_filter_is_counted(self) -> None:
        die(3, tags=["x"])
        die(2)

        assert count_matching(JobFilter(states=(JobState.DEAD,), tag="x")) == 3
        assert count_matching(JobFilter(search="division by zero")) == 5

    async def test_it_has_an_async_twin(self) -> None:
        assert await acount_matching(DEAD) == 0


class TestResubmitting:
    def test_all_that_match_are_resubmitted_with_progress(self) -> None:
        ids = die(250, tags=["x"])
        others = die(2)

        steps = [(step.done, step.total) for step in resubmit_matching(JobFilter(tag="x"))]

        assert steps == [(100, 250), (200, 250), (250, 250)]
        assert {get_job(id).state for id in ids} == {JobState.READY}
        assert {get_job(id).state for id in others} == {JobState.DEAD}

    def test_what_dies_again_meanwhile_is_not_met_twice(self) -> None:
        ids = die(150)

        for _ in resubmit_matching(DEAD):
            drain()

        assert {get_job(id).resubmissions for id in ids} == {1}

    def test_what_dies_after_the_start_is_left_alone(self) -> None:
        die(101)
        steps = resubmit_matching(DEAD)
        next(steps)
        late = die(1)

        assert [step.done for step in steps] == [101]
        assert get_job(late[0]).state == JobState.DEAD

    def test_stopping_the_iteration_stops_the_work(self) -> None:
        die(150)

        next(resubmit_matching(DEAD))

        assert count_matching(DEAD) == 50

    def test_a_payload_replaces_that_of_each(self) -> None:
        ids = die(2)

        list(resubmit_matching(DEAD, payload={"a": 6, "b": 3}))
        drain()

        assert [get_job(id).result for id in ids] == [2.0, 2.0]

    def test_a_payload_that_does_not_fit_changes_nothing(self) -> None:
        ids = die(2)

        *_, last = resubmit_matching(DEAD, payload={"a": "six"})

        assert (last.done, last.failed_count) == (0, 2)
        assert {type(error) for error in last.failed.values()} == {PayloadInvalid}
        assert {get_job(id).state for id in ids} == {JobState.DEAD}

    def test_a_rate_is_kept(self) -> None:
        die(6)
        begun = time.monotonic()

        steps = list(resubmit_matching(DEAD, rate=20))

        assert steps[-1].done == 6
        assert time.monotonic() - begun >= 6 / 20

    def test_cancelled_jobs_are_resubmitted_only_if_the_filter_says_so(self, engine: Engine) -> None:
        id = enqueue("mail.send", {"to": "Ann"}).id
        engine.jobs.cancel(id)

        assert list(resubmit_matching(JobFilter())) == []
        list(resubmit_matching(JobFilter(states=(JobState.CANCELLED,))))

        assert get_job(id).state == JobState.READY

    @pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
    def test_an_impossible_rate_is_refused_at_once(self, rate: float) -> None:
        with pytest.raises(OptionInvalid, match="rate"):
            resubmit_matching(DEAD, rate=rate)

    def test_states_that_cannot_be_resubmitted_are_refused_at_once(self) -> None:
        with pytest.raises(OptionInvalid, match=r"succeeded.*resubmitted"):
            resubmit_matching(JobFilter(states=(JobState.SUCCEEDED,)))

    async def test_it_has_an_async_twin(self) -> None:
        assert [step async for step in aresubmit_matching(DEAD)] == []


class TestDiscarding:
    def test_all_that_match_are_removed(self, engine: Engine) -> None:
        ids = die(120)
        sent = enqueue("mail.send", {"to": "Ann"})
        drain()

        *_, last = discard_matching(JobFilter())

        assert (last.done, last.total) == (120, 120)
        assert engine.jobs.get_many(ids) == [None] * 120
        assert get_job(sent.id).state == JobState.SUCCEEDED

    async def test_it_has_an_async_twin(self) -> None:
        id = enqueue("math.odd", {"what": "dead"}).id
        await sync_to_async(drain)()

        assert [step.done async for step in adiscard_matching(JobFilter(type="math.odd"))] == [1]
        with pytest.raises(JobNotFound):
            get_job(id)

    def test_live_jobs_cannot_be_discarded(self) -> None:
        with pytest.raises(OptionInvalid, match="discarded"):
            discard_matching(JobFilter(states=(JobState.READY,)))


def test_only_so_many_failures_are_kept() -> None:
    assert FAILURES_KEPT == 1_000
