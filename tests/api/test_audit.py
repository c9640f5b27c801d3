"""The audit log: every control leaves one entry, and none ever fails for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections, transaction
from django.utils import timezone

from jobs import api
from jobs.api import JobFilter, audit
from jobs.api.audit import AuditFilter
from jobs.core.states import JobState
from jobs.engine import WorkerInfo, get_engine
from jobs.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def job_id() -> str:
    return api.enqueue("test.noop", {}, allow_unknown=True, delay=60).id


@pytest.fixture
def worker_id() -> str:
    facts: dict[str, Any] = {"host": "h", "hostname": "h", "pid": 1, "pools": {}, "started_at_ms": 1}
    infos = [WorkerInfo(id=id, state="consuming", **facts) for id in ("h", "h.1")]
    get_engine().workers.beat(infos, ttl_ms=60_000)
    return "h.1"


def last() -> AuditEntry:
    entry = AuditEntry.objects.first()
    assert entry is not None
    return entry


CONTROLS: dict[str, Callable[[str, str], object]] = {
    "pool.scale default": lambda job, worker: api.pools.scale("default", 7),
    "pool.autoscale default": lambda job, worker: api.pools.autoscale("default", mode="dry_run", max_slots=9),
    "pool.pause default": lambda job, worker: api.pools.pause("default", reason="why"),
    "scheduler.pause ": lambda job, worker: api.scheduler.pause(reason="why"),
    "type.pause mail": lambda job, worker: api.types.pause("mail", reason="why"),
    "worker.drain h.1": lambda job, worker: api.workers.drain(worker),
    "worker.pause h": lambda job, worker: api.workers.pause("h", reason="why"),
    "worker.stop h.1": lambda job, worker: api.workers.stop(worker),
    "job.run_now JOB": lambda job, worker: api.run_now(job),
    "job.cancel JOB": lambda job, worker: api.cancel(job),
}


@pytest.mark.parametrize("what", CONTROLS)
def test_a_control_is_written_down(what: str, job_id: str, worker_id: str) -> None:
    with audit.acting("ana", "dashboard"):
        CONTROLS[what](job_id, worker_id)

    [entry] = AuditEntry.objects.all()
    assert f"{entry.action} {entry.target}" == what.replace("JOB", job_id)
    assert (entry.who, entry.source) == ("ana", "dashboard")
    assert timezone.now() - entry.at < timedelta(minutes=1)


def test_what_was_before_and_what_is_after(job_id: str) -> None:
    api.pools.scale("default", 7)
    api.pools.scale("default", 9)
    assert (last().before, last().after) == ({"slots": 7}, {"slots": 9})

    api.pools.pause("default", by="ana", reason="a move")
    assert last().before == {"paused": None}
    paused = last().after["paused"]
    assert (paused["by"], paused["reason"], last().reason) == ("ana", "a move", "a move")

    api.pools.resume("default")
    assert (last().action, last().before["paused"]["by"], last().after) == ("pool.resume", "ana", {"paused": None})


def test_of_a_paused_host_too(worker_id: str) -> None:
    api.workers.pause("h", by="ana", reason="disk", until=timedelta(hours=1))
    paused = last().after["paused"]
    assert (last().before, paused["by"], paused["reason"], last().reason) == ({"paused": None}, "ana", "disk", "disk")

    api.workers.resume("h")
    assert (last().action, last().before, last().after) == ("worker.resume", {"paused": paused}, {"paused": None})


def test_ending_jobs_is_written_down_whichever_way(job_id: str) -> None:
    api.cancel(job_id)
    api.resubmit(job_id)
    assert (last().action, last().after["state"]) == ("job.resubmit", "ready")
    api.cancel(job_id)
    api.discard(job_id)
    assert (last().action, last().target) == ("job.discard", job_id)


def test_what_changed_nothing_leaves_no_entry(job_id: str, worker_id: str) -> None:
    api.pools.resume("default")
    api.scheduler.resume()
    api.workers.resume(worker_id.partition(".")[0])
    with pytest.raises(api.WorkerNotFound):
        api.workers.drain("nobody")

    assert not AuditEntry.objects.exists()


def test_many_jobs_are_one_entry() -> None:
    ids = [api.enqueue("test.noop", {}, allow_unknown=True, tags=["x"]).id for _ in range(25)]

    *_, progress = api.cancel_matching(JobFilter(tag="x"))
    assert (progress.total, progress.done) == (25, 25)
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.target) == ("job.cancel", "25 jobs")
    assert entry.after["filter"]["tag"] == "x"

    api.discard_many(ids)
    assert (last().action, last().target, len(last().after["jobs"])) == ("job.discard", "25 jobs", 20)


def test_a_walk_that_was_cut_short_says_how_far_it_came() -> None:
    for _ in range(3):
        api.enqueue("test.noop", {}, allow_unknown=True)
    api.enqueue("test.noop", {}, allow_unknown=True, delay=60)

    steps = api.cancel_matching(JobFilter())
    assert next(steps).done == 1, "scheduled ones come first: they may become ready meanwhile"
    steps.close()

    assert last().target == "1 job"


def test_a_program_acts_as_the_user_of_its_process(job_id: str) -> None:
    api.cancel(job_id)

    assert (last().who, last().source) == (audit.system_user(), "python")


@pytest.mark.django_db(transaction=True)  # written by a thread of its own, which would wait for a transaction of ours
def test_an_async_program_is_written_down_too(job_id: str) -> None:
    async def act() -> None:
        with audit.acting("ana", "api"):
            await api.acancel(job_id)
        await sync_to_async(connections.close_all)()

    asyncio.run(act())

    assert get_engine().jobs.get(job_id).state == JobState.CANCELLED
    assert (last().who, last().source, last().target) == ("ana", "api", job_id)


# Without a database --------------------------------------------------------------------------------------------------


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise DatabaseError("the database is away")

    monkeypatch.setattr(AuditEntry.objects, "create", away)


def test_the_log_of_the_process_says_it_too_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "jobs.audit"), audit.acting("ana", "command"):
        audit.record("scheduler.pause", reason="database move")
        audit.record("pool.scale", "media")

    assert caplog.messages == [
        "scheduler.pause by ana (command): database move",
        "pool.scale media by ana (command)",
    ]


def test_a_control_works_without_a_database_and_says_that_it_was_not_recorded(
    no_database: None, job_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "jobs.audit"), audit.acting("ana", "command") as actor:
        api.cancel(job_id)

    assert api.get_job(job_id).state == JobState.CANCELLED
    assert actor.unrecorded == ["DatabaseError: the database is away"]
    assert "was not recorded" in caplog.text


def test_nothing_that_a_text_holds_keeps_an_act_out_of_it() -> None:
    odd = "\0\ud800"
    with api.audit.acting(f"ana{odd}", "api", reason=odd) as actor:
        audit.record("pool.scale", "x" * 299 + odd, before={odd: [odd]}, after=odd)

    kept = AuditEntry.objects.get()
    written = r"\x00\ud800"
    assert actor.unrecorded == []
    assert (kept.who, kept.reason, kept.after) == (f"ana{written}", written, written)
    assert kept.before == {written: [written]}
    assert kept.target == "x" * 299 + "\\"


def test_a_transaction_of_the_caller_is_not_spoiled(job_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL a failed statement would otherwise fail all that follow it."""
    monkeypatch.setattr(AuditEntry._meta, "db_table", "no_such_table")
    with transaction.atomic():
        api.cancel(job_id)
        assert not transaction.get_connection().needs_rollback


# Reading -------------------------------------------------------------------------------------------------------------


def test_the_log_is_read_newest_first_and_page_by_page() -> None:
    for number in range(5):
        audit.record("pool.scale", f"pool-{number}")

    first = audit.list(limit=2)
    assert [entry.target for entry in first.items] == ["pool-4", "pool-3"]
    second = audit.list(limit=3, cursor=first.next_cursor)
    assert [entry.target for entry in second.items] == ["pool-2", "pool-1", "pool-0"]
    assert second.next_cursor is None
    assert second.items[0].as_dict()["at"].endswith("Z")


def test_filters_narrow_it() -> None:
    with audit.acting("ana", "admin"):
        audit.record("pool.pause", "a")
    with audit.acting("ben", "command"):
        audit.record("pool.scale", "a")
        audit.record("job.cancel", "b")

    def found(**fields: Any) -> list[str]:
        return [entry.action for entry in audit.list(AuditFilter(**fields)).items]

    assert found(who="ana") == ["pool.pause"]
    assert found(source="command", action="pool") == ["pool.scale"]
    assert found(target="b") == ["job.cancel"]
    assert found(since=timezone.now() + timedelta(seconds=1)) == []
    assert len(found()) == 3
