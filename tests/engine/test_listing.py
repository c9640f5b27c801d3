"""Pages of jobs: each job once, in a stable order, while others come and go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine import Engine, JobFilter
from jobs.engine.listing import MAX_PAGE
from jobs.exceptions import OptionInvalid
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def walk(engine: Engine, wanted: JobFilter | None = None, limit: int = 7) -> list[str]:
    """All ids, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = engine.jobs.page(wanted, cursor=cursor, limit=limit)
        found += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def states(*names: str) -> JobFilter:
    return JobFilter(states=tuple(JobState(name) for name in names))


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
@pytest.mark.parametrize("state", ["ready", "scheduled", "succeeded", "dead"])
def test_each_job_is_on_one_page(steps: Steps, clock: ManualClock, state: str, limit: int) -> None:
    ids = [steps.enqueue(priority=n % 3, delay_ms=5_000 if state == "scheduled" else 0) for n in range(20)]
    if state in ("succeeded", "dead"):
        for position, job in enumerate(steps.lease_all()):
            steps.complete(job) if state == "succeeded" else steps.fail(job, "dead")
            clock.advance(position % 2)

    found = walk(steps.engine, states(state), limit)

    assert sorted(found) == sorted(ids)
    assert found == walk(steps.engine, states(state), 50)


def test_jobs_that_wait_are_listed_in_the_order_in_which_they_will_run(steps: Steps) -> None:
    low, high = steps.enqueue(priority=-1), steps.enqueue(priority=1)
    later, soon = steps.enqueue(delay_ms=9_000), steps.enqueue(delay_ms=5_000)

    assert walk(steps.engine, states("ready")) == [high, low]
    assert walk(steps.engine, states("scheduled")) == [soon, later]


def test_jobs_that_ended_are_listed_newest_first(steps: Steps, clock: ManualClock) -> None:
    ids = []
    for _ in range(3):
        ids.append(steps.bury())
        clock.advance(1)

    assert walk(steps.engine, states("dead")) == ids[::-1]


@pytest.mark.parametrize("gone", ["before", "at", "after"])
def test_a_cursor_holds_while_jobs_leave(steps: Steps, gone: str) -> None:
    ids = steps.enqueue_many(20)
    page = steps.engine.jobs.page(states("ready"), limit=10)
    assert [job.id for job in page.items] == ids[:10]

    steps.engine.jobs.cancel(ids[{"before": 3, "at": 9, "after": 10}[gone]])
    rest = steps.engine.jobs.page(states("ready"), cursor=page.next_cursor, limit=50)

    assert [job.id for job in rest.items] == (ids[11:] if gone == "after" else ids[10:])


def test_a_cursor_holds_while_jobs_come(steps: Steps, clock: ManualClock) -> None:
    dead = [steps.bury() for _ in range(6)]
    page = steps.engine.jobs.page(states("dead"), limit=3)
    clock.advance(1)
    steps.bury()

    rest = steps.engine.jobs.page(states("dead"), cursor=page.next_cursor, limit=50)

    assert sorted(job.id for job in page.items + rest.items) == sorted(dead)


def test_a_list_of_all_states_shows_what_runs_first_and_what_ended_last(steps: Steps) -> None:
    done = steps.enqueue()
    steps.complete(steps.lease())
    dead = steps.bury()
    scheduled, waiting = steps.enqueue(delay_ms=60_000), steps.enqueue()
    steps.fail(steps.lease(), "retry", delay_ms=60_000)
    running, ready = steps.enqueue_many(2)
    steps.lease()

    assert walk(steps.engine, limit=2) == [running, ready, waiting, scheduled, dead, done]


def test_a_list_spans_pools_and_partitions(engine: Engine) -> None:
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:topology", "wide", b'{"1":1,"2":3}')
    ids = [Steps(engine, pool).enqueue(id=f"job-{n:02}") for n in range(30) for pool in [("wide", "other")[n % 2]]]

    assert sorted(walk(engine)) == sorted(ids)
    assert sorted(walk(engine, JobFilter(pool="wide"))) == sorted(ids[::2])
    assert walk(engine, JobFilter(pool="nowhere")) == []


def test_filters_leave_out_what_does_not_match(steps: Steps, clock: ManualClock) -> None:
    a = steps.enqueue(type="email.send", tags=("vip", "x"), meta={"tenant": "Blue Ltd"})
    clock.advance(10)
    b = steps.enqueue(type="email.send", tags=("x",))
    c = steps.enqueue(type="report.build")
    start = moment(clock.now_ms())

    def found(**wanted: Any) -> list[str]:
        return walk(steps.engine, JobFilter(**wanted), limit=1)

    assert found(type="email.send") == [a, b]
    assert found(tag="x") == [a, b]
    assert found(tag="vip", type="email.send") == [a]
    assert found(type="email") == []
    assert found(search="BLUE") == [a]
    assert found(search="report") == [c]
    assert found(search=b) == [b]
    assert found(since=start) == [b, c]
    assert found(until=start - timedelta(seconds=1)) == [a]
    assert found(since=start + timedelta(milliseconds=1)) == []


def test_a_search_looks_at_errors_too(steps: Steps) -> None:
    steps.bury()
    job_id = steps.enqueue()
    steps.fail(steps.lease(), "dead", error=b'{"type":"ValueError","message":"no such Customer","traceback":""}')

    assert walk(steps.engine, JobFilter(search="customer")) == [job_id]
    assert walk(steps.engine, JobFilter(search="valueerror")) == [job_id]


def test_until_freezes_a_selection_of_dead_jobs(steps: Steps, clock: ManualClock) -> None:
    early = steps.bury()
    until = moment(clock.now_ms())
    clock.advance(0.001)
    steps.bury()
    wanted = JobFilter(states=(JobState.DEAD,), until=until)

    assert walk(steps.engine, wanted) == [early]
    steps.engine.jobs.resubmit(early)
    steps.fail(steps.lease(), "dead")
    assert walk(steps.engine, wanted) == []


@pytest.mark.parametrize(("limit", "given"), [(0, 1), (-5, 1), (5, 5), (10**9, 30)])
def test_a_limit_is_kept_within_bounds(steps: Steps, limit: int, given: int) -> None:
    steps.enqueue_many(30)

    assert len(steps.engine.jobs.page(limit=limit).items) == given
    assert MAX_PAGE == 1_000


def test_a_filter_that_leaves_out_almost_all_goes_on_from_page_to_page(steps: Steps) -> None:
    """A page looks at no more than so many jobs; what it found may be nothing, and the cursor leads on."""
    steps.enqueue_many(110)
    needle = steps.enqueue(type="needle")

    first = steps.engine.jobs.page(JobFilter(type="needle"), limit=10, look_at=100)

    assert (first.items, first.scanned) == ([], 100)
    second = steps.engine.jobs.page(JobFilter(type="needle"), cursor=first.next_cursor, limit=10)
    assert [job.id for job in second.items] == [needle]
    assert second.next_cursor is None


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "????",
        "é",
        "W10",
        "WyJyZWFkeSIsICIxIl0",
        "WyJub3doZXJlIiwiMSIsImEiXQ",
        "WyJyZWFkeSIsIm5hbiIsImEiXQ",
        "WyJyZWFkeSIsIjFfMCIsImEiXQ",
        "WyJyZWFkeSIsIiAxIiwiYSJd",
    ],
)
def test_a_cursor_that_is_none_is_refused(steps: Steps, cursor: str) -> None:
    steps.enqueue()

    with pytest.raises(OptionInvalid, match="cursor"):
        steps.engine.jobs.page(cursor=cursor)


def test_a_cursor_of_a_state_that_is_not_wanted_ends_the_list(steps: Steps) -> None:
    steps.enqueue_many(3)
    cursor = steps.engine.jobs.page(states("ready"), limit=1).next_cursor

    assert steps.engine.jobs.page(states("dead"), cursor=cursor).items == []


def test_ended_jobs_are_counted_up_to_a_moment(steps: Steps, clock: ManualClock) -> None:
    for _ in range(3):
        steps.bury()
        clock.advance(1)
    until = moment(clock.now_ms() - 1_000)

    assert steps.engine.jobs.count_ended([JobState.DEAD]) == 3
    assert steps.engine.jobs.count_ended([JobState.DEAD], until=until - timedelta(milliseconds=1)) == 2
    assert steps.engine.jobs.count_ended([JobState.DEAD, JobState.SUCCEEDED], pool="default", until=until) == 3
    assert steps.engine.jobs.count_ended([JobState.DEAD], pool="nowhere") == 0


def test_jobs_are_found_by_worker_attempts_and_how_long_they_are_in_their_state(
    steps: Steps, clock: ManualClock
) -> None:
    old, new = steps.enqueue(), steps.enqueue(delay_ms=60_000)
    [job] = steps.lease_all()
    clock.advance(30)

    def found(**words: Any) -> list[str]:
        return walk(steps.engine, JobFilter(**words))

    assert found(worker=job_worker(steps, old)[:2]) == [old]
    assert found(worker="nobody") == []
    assert found(attempts=1) == [old]
    assert found(attempts=2) == []
    assert found(before=moment(clock.now_ms() - 20_000)) == [old, new]
    steps.fail(job, "dead")
    assert found(before=moment(clock.now_ms() - 20_000)) == [new]


def job_worker(steps: Steps, job_id: str) -> str:
    return steps.engine.jobs.get(job_id).worker or ""
