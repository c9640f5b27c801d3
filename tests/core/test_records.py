"""Log records and the job that they came from."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import msgspec
import pytest

from jobs.conf import SECRET_KEYS
from jobs.core.context import Context
from jobs.core.job import LeasedJob, Route
from jobs.core.records import JobFormatter, JobOfRecord, Redacting, WorthAPlace, name_jobs_in_records
from jobs.core.redaction import Redaction


@pytest.fixture
def context() -> Context:
    lease = LeasedJob(
        id="j1",
        route=Route("mail", 1, 0),
        token="t",
        type="email.send",
        payload=b"{}",
        attempt=2,
        errors=1,
        crashes=0,
        fencing_token=2,
        priority=0,
        max_retries=3,
        max_crashes=3,
        timeout=None,
        backoff=(),
        extras={},
        leased_at=0,
    )
    return Context(lease, {})


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def handler(stream: io.StringIO) -> Iterator[logging.Handler]:
    """Listens to the logger ``shop``, which a project might have."""
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("shop")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_a_line_names_the_job_inside_of_one_and_nothing_outside(
    context: Context, handler: logging.Handler, stream: io.StringIO
) -> None:
    handler.setFormatter(JobFormatter("%(levelname)s %(job)s%(message)s"))
    logging.getLogger("shop").info("before")
    with context.active():
        logging.getLogger("shop").info("paid %d", 7)

    assert stream.getvalue().splitlines() == ["INFO before", "INFO [email.send j1 #2] paid 7"]


def test_a_message_is_one_line_whatever_it_quotes(handler: logging.Handler, stream: io.StringIO) -> None:
    handler.setFormatter(JobFormatter("%(levelname)s %(message)s"))
    try:
        raise ValueError
    except ValueError:
        logging.getLogger("shop").exception("by ana: %s", "x\nINFO by root\r\x1b[31m\u2028\0\u202e")

    first, *traceback = stream.getvalue().split("\n")
    assert first == r"ERROR by ana: x\nINFO by root\r\x1b[31m\u2028\x00\u202e"
    assert traceback[0] == "Traceback (most recent call last):"


def test_any_format_can_name_the_facts_and_what_the_project_says_of_them_stays(
    context: Context, handler: logging.Handler, stream: io.StringIO
) -> None:
    handler.setFormatter(logging.Formatter("%(job_id)s|%(job_type)s|%(attempt)s|%(message)s"))
    name_jobs_in_records()
    name_jobs_in_records()
    assert [type(known) for known in handler.filters] == [JobOfRecord]

    logging.getLogger("shop").info("before")
    with context.active():
        logging.getLogger("shop").info("in a job")
        logging.getLogger("shop").info("of another", extra={"job_id": "j2"})

    assert stream.getvalue().splitlines() == [
        "|||before",
        "j1|email.send|2|in a job",
        "j2|email.send|2|of another",
    ]


@pytest.mark.parametrize(
    ("name", "level", "in_job", "expected"),
    [
        ("jobs.worker", logging.INFO, False, True),
        ("httpx", logging.INFO, False, False),
        ("httpx", logging.INFO, True, True),
        ("httpx", logging.WARNING, False, True),
        ("django.request", logging.WARNING, True, False),
        ("django.dispatch", logging.ERROR, False, True),
    ],
)
def test_a_worker_without_logging_of_the_projects_own_shows_what_matters(
    context: Context, name: str, level: int, in_job: bool, expected: bool
) -> None:
    record = logging.LogRecord(name, level, __file__, 1, "m", (), None)
    if in_job:
        with context.active():
            assert WorthAPlace().filter(record) is expected
    else:
        assert WorthAPlace().filter(record) is expected


class TestSecrets:
    @pytest.fixture
    def log(self, handler: logging.Handler) -> logging.Logger:
        handler.addFilter(Redacting(Redaction(SECRET_KEYS), lambda type: frozenset({"account"})))
        return logging.getLogger("shop")

    def test_a_message_loses_its_secrets(self, log: logging.Logger, stream: io.StringIO) -> None:
        log.warning("cannot log in with password=%s", "hunter2")

        assert stream.getvalue() == "cannot log in with password=•••\n"

    def test_an_exception_does_too(self, log: logging.Logger, stream: io.StringIO) -> None:
        try:
            raise ValueError("token: t-" + "4711")
        except ValueError:
            log.exception("no")

        assert "t-4711" not in stream.getvalue()
        assert "ValueError: token: •••" in stream.getvalue()

    def test_what_the_payload_of_the_running_job_hides_is_hidden(
        self, context: Context, log: logging.Logger, stream: io.StringIO
    ) -> None:
        context.lease.payload = msgspec.json.encode({"account": "DE02-1203", "amount": 4200})
        with context.active():
            log.warning("paid %s to %s", 4200, "DE02-1203")

        assert stream.getvalue() == "paid 4200 to •••\n"

    def test_arguments_that_do_not_fit_are_left_to_the_handler(self) -> None:
        record = logging.LogRecord("x", logging.WARNING, "f", 1, "%d", ("no number",), None)

        assert Redacting(Redaction(SECRET_KEYS), lambda type: frozenset()).filter(record)
        assert record.args == ("no number",)
