"""Bulk moves to another pool and changes of priority: nothing is lost or doubled, whoever dies in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.core.bulk import WAITING
from jobs.core.job import JobSpec, Unique, moment
from jobs.core.states import JobState
from jobs.engine import BulkOperation, Engine, JobFilter
from jobs.engine.bulk import HOLD_MS, BulkRequest, Part
from jobs.exceptions import OptionInvalid, WrongState
from jobs.services.bulk import BulkWorker
from jobs.store.codec.bodies import encode_header
from jobs.store.connection import Store
from tests.support.clock import ManualClock


@pytest.fixture
def begin(engine: Engine, clock: ManualClock) -> Callable[..., BulkOperation]:
    """``begin("move", pool="other")``: of everything that waits in the pool default."""
    engine.topology.ensure("other")

    def open_(action: Any, **facts: Any) -> BulkOperation:
        filter = JobFilter(states=WAITING, pool="default", until=moment(clock.now_ms()))
        engine.bulk.open("m1", BulkRequest(action=action, filter=filter, **facts), confirmed=1000)
        return engine.bulk.get("m1")

    return open_


def in_pool(engine: Engine, pool: str) -> list[Any]:
    return engine.jobs.page(JobFilter(states=WAITING, pool=pool), limit=1000).items


def taken(engine: Engine) -> Part:
    """All jobs of the operation, chosen, and in the hands of a host that will die."""
    for _ in WAITING:
        BulkWorker(engine).step()
    part = engine.bulk.take("the dead host's")
    assert isinstance(part, Part)
    return part


class Died(Exception):
    """What a host meets at the worst moment."""


def half_move(engine: Engine, monkeypatch: pytest.MonkeyPatch, ids: list[str], **facts: Any) -> None:
    """Begins to move them to the pool other as a host does that dies before they go on there."""

    def die(_moved: object) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(engine.moving, "_create", die)
        with pytest.raises(Died):
            engine.moving.move(ids, "other", **facts)


def counts(engine: Engine) -> tuple[str, int, int, int]:
    operation = engine.bulk.get("m1")
    return operation.state, operation.done, operation.refused, operation.unsure


def test_waiting_jobs_go_on_in_the_other_pool_as_they_were(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], begin: Callable[..., BulkOperation]
) -> None:
    options = {"priority": 7, "tags": ("x",), "meta": {"a": "b"}, "max_retries": 1}
    [ready] = enqueue(1, **options)
    [later] = enqueue(1, delay_ms=60_000, **options)
    begin("move", pool="other")

    BulkWorker(engine).tick()

    assert counts(engine) == ("done", 2, 0, 0)
    assert in_pool(engine, "default") == []
    moved = {job.meta["moved_from"]: job for job in in_pool(engine, "other")}
    assert {id: job.state for id, job in moved.items()} == {ready: JobState.READY, later: JobState.SCHEDULED}
    assert moved[later].run_at == moment(clock.now_ms() + 60_000)
    for id, job in moved.items():
        assert (job.priority, job.tags, job.meta["a"], job.max_retries, job.payload) == (7, ["x"], "b", 1, {})
        assert engine.jobs.get(id).result == {"moved_to": job.id, "pool": "other", "move": "m1"}
        with pytest.raises(WrongState, match="was moved to another pool"):
            engine.jobs.resubmit(id)


def test_a_move_whose_host_died_halfway_is_finished_and_doubles_nothing(
    engine: Engine,
    store: Store,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    begin: Callable[..., BulkOperation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = enqueue(3)
    begin("move", pool="other")
    part = taken(engine)
    facts = {"move": "m1", "at_ms": part.operation.opened_at_ms}
    engine.moving.move(ids[:1], "other", **facts)
    half_move(engine, monkeypatch, ids[1:2], **facts)
    assert len(in_pool(engine, "other")) == 1
    clock.advance(HOLD_MS / 1000 + 0.001)

    BulkWorker(engine).tick()

    assert counts(engine) == ("done", 3, 0, 0)
    assert sorted(job.meta["moved_from"] for job in in_pool(engine, "other")) == sorted(ids)


def test_what_is_half_moved_is_not_discarded_before_another_host_has_finished_it(
    engine: Engine,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    begin: Callable[..., BulkOperation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = enqueue(2)
    begin("move", pool="other")
    part = taken(engine)
    half_move(engine, monkeypatch, ids, move="m1", at_ms=part.operation.opened_at_ms)

    refused = engine.jobs.discard_many(ids)
    assert all("half moved" in str(problem) for problem in refused.values())
    clock.advance(HOLD_MS / 1000 + 0.001)
    BulkWorker(engine).tick()

    assert sorted(job.meta["moved_from"] for job in in_pool(engine, "other")) == sorted(ids)
    assert engine.jobs.discard_many(ids) == dict.fromkeys(ids)


def test_stopped_after_its_host_died_it_finishes_what_was_half_moved_and_no_more(
    engine: Engine,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    begin: Callable[..., BulkOperation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = enqueue(2)
    begin("move", pool="other")
    part = taken(engine)
    half_move(engine, monkeypatch, ids[:1], move="m1", at_ms=part.operation.opened_at_ms)
    engine.bulk.cancel("m1")
    clock.advance(HOLD_MS / 1000 + 0.001)

    BulkWorker(engine).tick()

    assert [job.meta["moved_from"] for job in in_pool(engine, "other")] == ids[:1]
    assert engine.jobs.get(ids[1]).state == JobState.READY


def test_what_others_must_find_where_it_is_stays(engine: Engine, begin: Callable[..., BulkOperation]) -> None:
    unique = JobSpec(type="test.echo", unique=Unique(key="k"))
    [held] = engine.jobs.enqueue(unique, [b"{}"])
    begin("move", pool="other")

    BulkWorker(engine).tick()

    assert counts(engine) == ("done", 0, 1, 0)
    assert "holds a unique key" in engine.bulk.refusals("m1", 9)[held.id]
    assert engine.jobs.get(held.id).state == JobState.READY


def test_a_priority_changes_who_is_next(
    engine: Engine,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[Any]],
    begin: Callable[..., BulkOperation],
) -> None:
    first, second = enqueue(2)
    engine.jobs.prioritize_many([second], 1)
    assert [job.id for job in lease(1)] == [second]
    third = enqueue(1)[0]
    begin("prioritize", priority=-5)

    BulkWorker(engine).tick()

    assert counts(engine) == ("done", 2, 0, 0)
    assert {engine.jobs.get(id).priority for id in (first, third)} == {-5}
    assert [job.id for job in lease(2)] == [first, third]


def test_the_largest_header_has_room_for_where_it_was_moved_from_and_another_priority(
    engine: Engine, begin: Callable[..., BulkOperation]
) -> None:
    [job] = engine.jobs.enqueue(largest(), [b"{}"])
    engine.jobs.prioritize_many([job.id], -90)
    begin("move", pool="other")

    BulkWorker(engine).tick()

    [moved] = in_pool(engine, "other")
    assert (moved.meta["moved_from"], moved.priority) == (job.id, -90)


def largest() -> JobSpec:
    """A job with all the meta that is taken."""
    size = 64_000
    while True:
        spec = JobSpec(type="test.echo", meta={"a": "x" * (size + 1)})
        try:
            encode_header(spec)
        except OptionInvalid:
            return JobSpec(type="test.echo", meta={"a": "x" * size})
        size += 1
