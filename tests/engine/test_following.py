"""Seeing jobs change from outside, look by look."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.core.states import JobState
from jobs.engine import Engine, Follower, JobFilter
from jobs.engine.following import LOOK_AT
from tests.support.clock import ManualClock
from tests.support.steps import Steps


@pytest.fixture
def follow(engine: Engine, clock: ManualClock) -> Any:
    def follow(**filter: Any) -> Follower:
        follower = Follower(engine.store, engine.topology, engine.jobs, JobFilter(**filter))
        clock.advance(0.001)
        return follower

    return follow


def seen(follower: Follower, clock: ManualClock) -> list[tuple[str, str]]:
    """(id, state) of what the next look tells."""
    clock.advance(0.001)
    return [(job.id, job.state.value) for job in follower.look().jobs]


def test_each_change_is_told_once_in_its_order(steps: Steps, clock: ManualClock, follow: Any) -> None:
    follower = follow()
    id = steps.enqueue()
    assert seen(follower, clock) == [(id, "ready")]
    assert seen(follower, clock) == []

    job = steps.lease(started=True)
    assert seen(follower, clock) == [(id, "leased")]

    steps.fail(job, "retry", delay_ms=5_000)
    assert seen(follower, clock) == [(id, "retry_wait")]

    clock.advance(5)
    steps.complete(steps.lease())
    assert seen(follower, clock) == [(id, "succeeded")]
    assert seen(follower, clock) == []


def test_what_was_before_is_no_news(steps: Steps, clock: ManualClock, follow: Any) -> None:
    steps.enqueue_many(3)
    steps.complete(steps.lease())
    clock.advance(1)

    assert seen(follow(), clock) == []


def test_a_renewed_lease_is_no_change(steps: Steps, clock: ManualClock, follow: Any) -> None:
    follower = follow()
    steps.enqueue()
    job = steps.lease(started=True)
    seen(follower, clock)

    steps.engine.leases.renew(steps.route, [(job.id, job.token)], 60_000)

    assert seen(follower, clock) == []


def test_a_job_that_is_resubmitted_or_snoozed_is_told_again(steps: Steps, clock: ManualClock, follow: Any) -> None:
    follower = follow()
    id = steps.enqueue()
    steps.fail(steps.lease(), "dead")
    assert seen(follower, clock) == [(id, "dead")]

    steps.engine.jobs.resubmit(id)
    assert seen(follower, clock) == [(id, "ready")]

    for _ in range(2):
        steps.fail(steps.lease(), "snooze")
        assert seen(follower, clock)[-1] == (id, "scheduled")


def test_changes_of_several_jobs_come_in_order_of_time(steps: Steps, clock: ManualClock, follow: Any) -> None:
    follower = follow()
    ids = steps.enqueue_many(3)
    for _ in ids:
        clock.advance(0.001)
        steps.complete(steps.lease())

    assert seen(follower, clock) == [(id, "succeeded") for id in ids]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"states": (JobState.DEAD,)}, ["dead"]),
        ({"type": "other"}, ["ready"]),
        ({"tag": "red"}, ["ready"]),
        ({"pool": "empty"}, []),
    ],
)
def test_only_what_matches_is_told(
    steps: Steps, clock: ManualClock, follow: Any, filter: dict[str, Any], expected: list[str]
) -> None:
    follower = follow(**filter)
    steps.enqueue()
    steps.fail(steps.lease(), "dead")
    steps.enqueue(type="other", tags=("red",))

    assert [state for _, state in seen(follower, clock)] == expected


def test_of_a_flood_the_newest_are_told_and_the_others_counted(steps: Steps, clock: ManualClock, follow: Any) -> None:
    follower = follow(states=(JobState.SUCCEEDED,))
    steps.enqueue_many(LOOK_AT + 50)
    for job in steps.lease_all():
        steps.complete(job)
    clock.advance(0.001)

    changes = follower.look()

    assert (len(changes.jobs), changes.unseen) == (LOOK_AT, 50)
    assert follower.look().unseen == 0


def test_a_look_takes_as_many_commands_with_2000_jobs_waiting_as_with_none(
    steps: Steps, clock: ManualClock, follow: Any
) -> None:
    steps.enqueue()
    follower = follow()
    follower.look()
    before = _commands(steps, follower, clock)
    steps.enqueue_many(2_000)
    follower.look()

    assert _commands(steps, follower, clock) == before


def _commands(steps: Steps, follower: Follower, clock: ManualClock) -> int:
    clock.advance(0.001)
    info: Any = steps.engine.store.client.info("commandstats")
    follower.look()
    after: Any = steps.engine.store.client.info("commandstats")
    return sum(
        after[name]["calls"] - info.get(name, {"calls": 0})["calls"]
        for name in after
        if name not in ("cmdstat_info", "cmdstat_time", "cmdstat_hgetall")
    )
