"""What a handler sees of its job."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.core.context import Context, activate, current_context, deactivate
from jobs.core.job import LeasedJob, Route
from jobs.exceptions import JobCancelled, LeaseLost, OptionInvalid


def lease(**changes: Any) -> LeasedJob:
    facts: dict[str, Any] = {
        "id": "01",
        "route": Route("critical", 1, 0),
        "token": "t",
        "type": "email.send",
        "payload": b"{}",
        "attempt": 2,
        "errors": 1,
        "crashes": 0,
        "fencing_token": 7,
        "priority": 5,
        "max_retries": 3,
        "max_crashes": 3,
        "timeout": 30.0,
        "backoff": ("fixed", 1.0, 0.0),
        "extras": {},
        "leased_at": 0,
    }
    return LeasedJob(**{**facts, **changes})


def context(**changes: Any) -> Context:
    return Context(lease(**changes), {"to": "Ann"})


def test_a_context_shows_the_job() -> None:
    ctx = context()

    assert (ctx.id, ctx.type, ctx.pool) == ("01", "email.send", "critical")
    assert (ctx.attempt, ctx.max_retries, ctx.fencing_token) == (2, 3, 7)
    assert ctx.payload == {"to": "Ann"}


def test_what_a_plain_job_does_not_have_is_empty() -> None:
    ctx = context()

    assert (ctx.tags, ctx.meta, ctx.parents) == ([], {}, {})
    assert (ctx.schedule, ctx.fire_time, ctx.workflow, ctx.deadline) == (None, None, None, None)


def test_extras_of_the_job_are_shown() -> None:
    ctx = context(extras={"tags": ["a"], "meta": {"k": "v"}, "schedule": "nightly", "fire_time_ms": 1_767_225_600_000})

    assert (ctx.tags, ctx.meta, ctx.schedule) == (["a"], {"k": "v"}, "nightly")
    assert ctx.fire_time == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_deadline_is_a_moment() -> None:
    assert Context(lease(), {}, deadline_at=1_767_225_600.5).deadline == datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC)


def test_progress_is_handed_on() -> None:
    reported: list[tuple[float, float | None, str]] = []
    ctx = Context(lease(), {}, report=lambda *what: reported.append(what))

    ctx.progress(3, 12, "thumbnails")
    ctx.progress(0.5)

    assert reported == [(3, 12, "thumbnails"), (0.5, None, "")]


@pytest.mark.parametrize("current", [-1, float("nan"), float("inf"), "3", True, None])
def test_progress_refuses_what_is_no_number(current: Any) -> None:
    with pytest.raises(OptionInvalid, match="progress current"):
        context().progress(current)


def test_a_stopped_job_learns_why_and_the_first_reason_stays() -> None:
    ctx = context()
    ctx.raise_if_cancelled()

    ctx.stop(JobCancelled())
    ctx.stop(LeaseLost())

    assert ctx.is_cancelled()
    with pytest.raises(JobCancelled):
        ctx.raise_if_cancelled()


def test_log_records_carry_the_job(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "jobs.job"):
        context().log.info("sent to %s", "Ann")

    record = caplog.records[0]
    assert (record.getMessage(), record.__dict__["job_id"], record.__dict__["attempt"]) == ("sent to Ann", "01", 2)


def test_outside_a_job_there_is_no_current_context() -> None:
    with pytest.raises(LookupError, match="only inside a handler"):
        current_context()


def test_inside_a_job_the_context_is_found_from_anywhere() -> None:
    with context().active() as ctx:
        assert current_context() is ctx

    with pytest.raises(LookupError):
        current_context()


def test_each_thread_and_each_task_has_its_own() -> None:
    seen: dict[str, str] = {}

    def in_thread() -> None:
        token = activate(context(id="thread"))
        seen["thread"] = current_context().id
        deactivate(token)

    async def in_task(name: str) -> None:
        with context(id=name).active():
            await asyncio.sleep(0)
            seen[name] = current_context().id

    async def both() -> None:
        await asyncio.gather(in_task("one"), in_task("two"))

    with context(id="outer").active():
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
        asyncio.run(both())
        seen["outer"] = current_context().id

    assert seen == {name: name for name in ("thread", "one", "two", "outer")}
