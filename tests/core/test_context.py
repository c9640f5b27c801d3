"""What a handler sees of its job."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest

from jobs.core.context import Context, activate, current_context, deactivate
from jobs.core.job import LeasedJob, Route
from jobs.core.job_log import JobLog
from jobs.exceptions import JobCancelled, LeaseLost, OptionInvalid
from jobs.store.codec.jobs import encode_progress
from jobs.store.log_lines import decode_line, encode_line


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


class Host:
    """Notes what an attempt says of itself."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def progress(self, current: float, total: float | None, message: str) -> None:
        self.heard.append((current, total, message))

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None:
        self.heard.append((level, message, fields))

    def run(self, function: Any, arguments: dict[str, Any]) -> Any:
        return function(**arguments)


def test_progress_is_handed_on() -> None:
    host = Host()
    ctx = Context(lease(), {}, host=host)

    ctx.progress(3, 12, "thumbnails")
    ctx.progress(0.5)

    assert host.heard == [(3, 12, "thumbnails"), (0.5, None, "")]


class Unspeakable:
    def __repr__(self) -> str:
        raise ConnectionError("the row is gone")


class Step(IntEnum):
    TWO = 2


class FloatOfALibrary(float):
    """As NumPy's: MessagePack takes it for no number."""


def test_progress_is_handed_on_as_numbers_that_can_be_stored() -> None:
    host = Host()

    Context(lease(), {}, host=host).progress(FloatOfALibrary(0.5), Step.TWO)

    assert [type(number) for number in host.heard[0][:2]] == [float, int]
    assert encode_progress(*host.heard[0])


@pytest.mark.parametrize("current", [-1, float("nan"), float("inf"), "3", True, None, 2**70, 10**400, 1e300])
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


class TestLog:
    @pytest.fixture
    def host(self) -> Host:
        return Host()

    @pytest.fixture
    def log(self, host: Host) -> JobLog:
        return Context(lease(), {}, host=host).log

    def test_a_line_is_kept_with_its_fields(self, host: Host, log: JobLog) -> None:
        log.info("built %s of %d", "May", 12, rows=3, page="a")
        log.log(logging.WARNING, "slow")

        assert host.heard == [
            (logging.INFO, "built May of 12", {"rows": 3, "page": "a"}),
            (logging.WARNING, "slow", {}),
        ]

    def test_a_mapping_fills_in_names_as_in_any_logger(self, host: Host, log: JobLog) -> None:
        log.info("%(a)s-%(b)s", {"a": 1, "b": 2})

        assert host.heard[0][1] == "1-2"

    def test_what_does_not_fit_its_arguments_is_shown_and_not_raised(
        self, host: Host, log: JobLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "jobs.job"):
            log.info("%d pages", "many")

        assert host.heard[0][1] == caplog.messages[0] == "%d pages ('many',)"

    @pytest.mark.parametrize(
        "call",
        [
            lambda log: log.info(Unspeakable()),
            lambda log: log.info("read %s", Unspeakable()),
            lambda log: log.info("%d pages", Unspeakable()),
            lambda log: log.info("read", page=Unspeakable()),
            lambda log: log.info("read", sizes=[2**64, -(10**400), float("nan")], by={None: {1, 2}}, raw=b"\xff"),
            lambda log: log.log(10**30, "read"),
        ],
    )
    def test_nothing_that_is_to_be_shown_keeps_the_line_from_being_kept(
        self, call: Any, host: Host, log: JobLog
    ) -> None:
        call(log)

        ((level, message, fields),) = host.heard
        assert decode_line(1, 1, encode_line(0, level, message, fields)).message

    def test_what_is_no_exception_is_shown_in_its_place(
        self, host: Host, log: JobLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.CRITICAL, "jobs.job"):
            log.info("read", exc_info=("a", "b", "c"))  # type: ignore[arg-type]

        assert host.heard[0][2] == {"traceback": "('a', 'b', 'c')"}

    def test_an_exception_leaves_its_traceback(self, host: Host, log: JobLog) -> None:
        try:
            raise LookupError("no page")
        except LookupError as error:
            log.exception("could not read")
            log.warning("the same", exc_info=error)

        for level, _, fields in host.heard:
            assert level in (logging.ERROR, logging.WARNING)
            assert fields["traceback"].endswith("LookupError: no page\n")

    def test_debug_lines_are_kept_only_where_the_logger_wants_them(
        self, host: Host, log: JobLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        log.debug("unseen")
        with caplog.at_level(logging.DEBUG, "jobs.job"):
            log.debug("seen")

        assert [message for _, message, _ in host.heard] == ["seen"]

    def test_the_record_of_the_process_names_the_callers_line_and_carries_the_fields(
        self, log: JobLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "jobs.job"):
            log.info("hello", rows=3, extra={"tenant": "a"})

        (record,) = caplog.records
        assert record.pathname == __file__
        assert (record.__dict__["fields"], record.__dict__["tenant"]) == ({"rows": 3}, "a")

    def test_in_a_plain_call_lines_go_to_the_process_only(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "jobs.job"):
            context().log.info("hello", rows=3)

        assert caplog.messages == ["hello"]


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
