"""Changing the course of waiting jobs: another pool, another priority; by id, and of many in one operation."""

from __future__ import annotations

import pytest

from jobs import enqueue, get_job, list_jobs, move, prioritize
from jobs.api import JobFilter, audit, bulk
from jobs.api.audit import AuditFilter
from jobs.core.states import JobState
from jobs.engine import Engine
from jobs.engine.bulk import Part
from jobs.exceptions import JobNotFound, OptionInvalid, WrongState
from jobs.services.bulk import BulkWorker


def test_a_job_that_is_moved_goes_on_under_another_id(engine: Engine) -> None:
    id = enqueue("math.odd", {"what": "x"}, tags=["a"], delay=60).id
    enqueue("mail.send", {"to": "Ann"})

    moved = move(id, "critical")

    assert (moved.pool, moved.type, moved.tags, moved.meta) == ("critical", "math.odd", ["a"], {"moved_from": id})
    assert moved.state == JobState.SCHEDULED
    assert get_job(id).state == JobState.CANCELLED
    assert get_job(id).result["moved_to"] == moved.id


def test_where_it_cannot_be_moved_it_stays() -> None:
    id = enqueue("math.odd", {"what": "x"}).id

    with pytest.raises(OptionInvalid, match="there is no pool 'defalt'"):
        move(id, "defalt")
    with pytest.raises(WrongState, match="already"):
        move(id, "default")
    with pytest.raises(JobNotFound):
        move("nobody", "default")
    assert get_job(id).state == JobState.READY


def test_a_move_that_is_refused_leaves_no_operation_behind(db: None, engine: Engine) -> None:
    held = enqueue("math.odd", {"what": "x"}, unique_key="k").id
    ended = enqueue("math.odd", {"what": "x"}).id
    engine.jobs.cancel(ended)

    for id, pool in ((held, "critical"), (ended, "critical"), (ended, "default")):
        with pytest.raises(WrongState):
            move(id, pool)

    assert bulk.newest() == []
    assert audit.list(AuditFilter(action="job.move")).items == []


def test_a_priority_is_changed_and_that_is_on_record(db: None) -> None:
    id = enqueue("math.odd", {"what": "x"}, priority=3).id

    assert prioritize(id, -20).priority == -20
    [entry] = audit.list(AuditFilter(target=id, action="job.prioritize")).items
    assert (entry.before, entry.after) == ({"priority": 3}, {"priority": -20})
    with pytest.raises(OptionInvalid, match="priority"):
        prioritize(id, 101)


def test_jobs_that_were_named_one_by_one_are_an_operation_too(engine: Engine) -> None:
    chosen = [enqueue("math.odd", {"what": "x"}).id for _ in range(3)]
    other = enqueue("math.odd", {"what": "x"}).id
    for id in chosen:
        engine.jobs.cancel(id)

    operation = bulk.start_on("discard", chosen)

    assert (operation.state, operation.total, operation.request.filter.pool) == ("running", 3, "default")
    assert engine.bulk.take("t") is not None
    assert bulk.carry_out(operation.id).done == 0, "it can be called off for a while"
    bulk.stop(operation.id)
    BulkWorker(engine).tick()
    assert {job.id for job in list_jobs(JobFilter()).items} == {*chosen, other}


def test_who_finishes_an_operation_waits_for_the_part_that_another_host_has(engine: Engine, monkeypatch) -> None:
    enqueue("math.odd", {"what": "x"})
    operation = bulk.start("prioritize", JobFilter(states=(JobState.READY,)), confirmed=9, priority=7)
    part = engine.bulk.take("another host", operation.id)
    assert isinstance(part, Part)

    assert not bulk.finish(operation.id, within=0.0).is_over
    monkeypatch.setattr("jobs.api.bulk.time.sleep", lambda seconds: BulkWorker(engine)._select(part))

    assert bulk.finish(operation.id).is_over
    assert [job.priority for job in list_jobs(JobFilter()).items] == [7]


@pytest.mark.parametrize(("action", "facts"), [("move", {}), ("prioritize", {}), ("cancel", {"pool": "default"})])
def test_what_an_action_needs_must_be_given_and_nothing_else(action: bulk.BulkAction, facts: dict[str, str]) -> None:
    with pytest.raises(OptionInvalid, match="needs"):
        bulk.start(action, JobFilter(), pool=facts.get("pool"))
