"""What attempts have logged, as users read it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from jobs import Context, ajob_logs, get_job, job, job_logs
from jobs.exceptions import JobNotFound
from jobs.testing import drain


@pytest.fixture
def handled() -> Any:
    """Enqueues a job of this function, runs it through all its attempts, and answers its id."""

    def handled(function: Any, **options: Any) -> str:
        handle = job("logs.job", **options)(function).enqueue()
        drain(skip_waits=True)
        return handle.id

    return handled


def test_lines_stand_by_attempt_in_their_order(handled: Any) -> None:
    def handler(ctx: Context) -> None:
        ctx.log.info("attempt %d", ctx.attempt, page="a")
        ctx.log.warning("halfway")
        if ctx.attempt == 1:
            raise LookupError

    page = job_logs(handled(handler))

    assert [(line.attempt, line.number, line.level, line.text) for line in page.lines] == [
        (1, 1, "INFO", "attempt 1 page=a"),
        (1, 2, "WARNING", "halfway"),
        (2, 1, "INFO", "attempt 2 page=a"),
        (2, 2, "WARNING", "halfway"),
    ]
    assert page.gone == {}
    assert page.lines[0].as_dict() == {
        "attempt": 1,
        "number": 1,
        "at": page.as_dict()["lines"][0]["at"],
        "level": "INFO",
        "message": "attempt 1",
        "fields": {"page": "a"},
    }


def test_one_attempt_alone_and_what_came_since(handled: Any) -> None:
    def handler(ctx: Context) -> None:
        ctx.log.info("hello from %d", ctx.attempt)
        if ctx.attempt == 1:
            raise LookupError

    id = handled(handler)

    second = job_logs(id, 2)
    assert [line.message for line in second.lines] == ["hello from 2"]
    assert [line.message for line in job_logs(id, after=second.cursor()).lines] == ["hello from 1"]
    assert job_logs(id, after=job_logs(id).cursor()).lines == []


def test_a_job_with_more_to_say_than_is_kept_says_how_much_is_gone(handled: Any, settings: Any) -> None:
    def handler(ctx: Context) -> None:
        for number in range(10):
            ctx.log.info("line %d", number)

    with override_settings(SCHEDULER={**settings.SCHEDULER, "LOG_LINES": 4}):
        page = job_logs(handled(handler))

    assert [line.message for line in page.lines] == ["line 6", "line 7", "line 8", "line 9"]
    assert (page.gone, page.lines[0].number) == ({1: 6}, 7)


async def test_it_has_its_async_twin(handled: Any) -> None:
    with pytest.raises(JobNotFound):
        await ajob_logs("nobody")


def test_the_job_itself_will_do_for_its_id(handled: Any) -> None:
    id = handled(lambda ctx: ctx.log.info("hello"))

    assert job_logs(get_job(id)).lines == job_logs(id).lines


@pytest.mark.parametrize(
    ("message", "fields", "expected"),
    [
        ("half \ud800", {}, ("half \\ud800", {})),
        ("x" * 5_000, {}, ("x" * 4_000 + "… (1000 more characters)", {})),
        ("m", {"when": {1, 2}, "who": object}, ("m", {"when": [1, 2], "who": "<class 'object'>"})),
        ("m", {"data": b"\xff"}, ("m", {"data": "/w=="})),
        ("m", {"a": "y" * 9_000, "b": "y" * 9_000}, ("m", {"cut": "2 fields of 16067 bytes"})),
    ],
    ids=["half a character", "a long message", "no JSON", "bytes", "long fields"],
)
def test_whatever_is_logged_can_be_kept(
    handled: Any, message: str, fields: dict[str, Any], expected: tuple[str, dict[str, Any]]
) -> None:
    (line,) = job_logs(handled(lambda ctx: ctx.log.info(message, **fields))).lines

    assert (line.message, line.fields) == expected
