"""What a worker asks leave for, and when it gives places back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.core.job import LeasedJob
from jobs.engine import Engine
from jobs.exceptions import StoreUnavailable
from jobs.registry import JobType, registry
from jobs.store.connection import Store
from jobs.worker.permits import LAZY_SECONDS, Permits
from tests.support.steps import Steps


def handler() -> None: ...


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registry.restored():
        registry._types.clear()
        registry.add(JobType(handler, name="free"))
        registry.add(JobType(handler, name="one", concurrency=1))
        yield


class Worker:
    def __init__(self, engine: Engine) -> None:
        self.steps = Steps(engine)
        self.permits = Permits(engine)

    def enqueue(self, *names: str) -> list[str]:
        """Names are a type and, behind a colon, a concurrency key."""
        pairs = [name.partition(":")[::2] for name in names]
        return [self.steps.enqueue(type=type_name, concurrency_key=key or None) for type_name, key in pairs]

    def fetch(self, room: int) -> list[LeasedJob]:
        reply = self.steps.ask(self.permits.lease_limit(self.steps.route, room))
        token = reply.jobs[0].token if reply.jobs else ""
        return list(self.permits.let_through(self.steps.route, token, reply.jobs, room))

    def end(self, *jobs: LeasedJob) -> None:
        for job in jobs:
            self.steps.complete(job)
        self.permits.ended(jobs)


@pytest.fixture
def worker(engine: Engine) -> Worker:
    return Worker(engine)


def ids(jobs: list[LeasedJob]) -> list[str]:
    return [job.id for job in jobs]


def test_without_limited_types_nothing_is_asked(engine: Engine) -> None:
    registry._types.pop("one")

    assert not Permits(engine).are_needed


def test_jobs_pass_in_their_order_and_those_without_leave_are_put_aside(worker: Worker) -> None:
    jobs = worker.enqueue("free", "one:a", "one:a", "free", "one:b")

    assert ids(worker.fetch(9)) == [jobs[0], jobs[1], jobs[3], jobs[4]]
    assert worker.steps.get(jobs[2]).throttled


def test_a_long_row_of_jobs_that_have_to_wait_is_passed_in_a_few_steps(worker: Worker) -> None:
    worker.enqueue(*["one:a"] * 200, "free")
    started: list[LeasedJob] = []
    steps = 0
    while not any(job.type == "free" for job in started):
        started += worker.fetch(2)
        steps += 1

    assert steps <= 8


def test_what_there_is_no_room_for_goes_back_to_its_old_place(worker: Worker) -> None:
    worker.enqueue("one:a", "one:a", "one:a")
    worker.fetch(3)  # two had to wait: more are leased the next time
    jobs = worker.enqueue("free", "one:b", "free", "one:c")

    assert ids(worker.fetch(1)) == jobs[:1]
    assert [worker.steps.get(job_id).attempt for job_id in jobs[1:]] == [0, 0, 0]
    assert ids(worker.fetch(9)) == jobs[1:]


def test_while_nobody_waits_places_are_given_back_with_the_next_request(worker: Worker, monkeypatch: Any) -> None:
    called: list[str] = []
    run = Store.run
    monkeypatch.setattr(Store, "run", lambda store, name, *a, **k: (called.append(name), run(store, name, *a, **k))[1])
    for _ in range(3):
        worker.enqueue("one:a")
        worker.end(*worker.fetch(1))

    assert called.count("limit_take") == 3
    assert "limit_give" not in called


def test_where_nothing_is_asked_they_are_given_back_soon(worker: Worker) -> None:
    worker.enqueue("one:a")
    worker.end(*worker.fetch(1))
    seconds = worker.permits.seconds_to_turn()
    assert seconds is not None
    assert seconds <= LAZY_SECONDS

    worker.permits._give_at = 0.0  # that long later
    worker.permits.turn()

    worker.enqueue("one:a")
    assert len(Worker(worker.steps.engine).fetch(1)) == 1


def test_where_somebody_waits_they_are_given_back_at_once(worker: Worker) -> None:
    first, second = worker.enqueue("one:a", "one:a")
    running = worker.fetch(2)

    worker.end(*running)

    assert ids(Worker(worker.steps.engine).fetch(1)) == [second]
    assert ids(running) == [first]


def test_a_request_whose_answer_was_lost_is_made_again(worker: Worker, monkeypatch: Any) -> None:
    worker.enqueue("one:a", "one:b")
    reply = worker.steps.ask(2)
    token = reply.jobs[0].token
    take = worker.steps.engine.limits.take

    def lost(*arguments: Any, **named: Any) -> Any:
        take(*arguments, **named)
        raise StoreUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(worker.steps.engine.limits, "take", lost)
        with pytest.raises(StoreUnavailable):
            worker.permits.let_through(worker.steps.route, token, reply.jobs, 2)

    assert len(worker.permits.let_through(worker.steps.route, token, reply.jobs, 2)) == 2


def test_an_end_that_cannot_be_told_does_no_harm(worker: Worker, monkeypatch: Any) -> None:
    """The place is found by a service, since its lease is over."""
    worker.enqueue("one:a", "one:a")
    running = worker.fetch(2)

    def away(*_: Any) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(worker.steps.engine.limits, "give", away)
    worker.end(*running)

    assert {job_id for job_id, _ in worker.steps.engine.limit_upkeep.forgotten(worker.permits._limits["one"])} == set(
        ids(running)
    )
