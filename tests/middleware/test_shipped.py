"""``Logging`` and ``Tracing``, around attempts and enqueues, in sync and async chains."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from jobs import Snooze, get_job, job
from jobs.core.context import Context
from jobs.core.job import EnqueueRequest, JobSpec, LeasedJob, Route
from jobs.middleware import AsgirefBridge, chain
from jobs.registry import registry


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """OpenTelemetry takes one provider for the whole process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Callable[[], list[ReadableSpan]]:
    """The spans of this test that have ended, in the order in which they did."""
    exporter.clear()
    return lambda: list(exporter.get_finished_spans())


def context(meta: dict[str, str] | None = None) -> Context:
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
        extras={"meta": meta or {}},
        leased_at=0,
    )
    return Context(lease, {})


def attempt(name: str, handler: Callable[[Any], Any], meta: dict[str, str] | None = None) -> Any:
    return chain([f"jobs.middleware.{name}"], handler, AsgirefBridge())(context(meta))


def fails(_: Any) -> None:
    raise LookupError("no such address")


class TestLogging:
    def test_start_and_end_of_an_attempt(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "jobs.middleware"):
            assert attempt("Logging", lambda _: 7) == 7

        started, ended = caplog.messages
        assert started == "email.send j1 started, attempt 2"
        assert ended.startswith("email.send j1 succeeded after 0.0")

    def test_a_failure_is_a_warning_and_is_not_swallowed(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "jobs.middleware"), pytest.raises(LookupError):
            attempt("Logging", fails)

        assert caplog.records[-1].levelname == "WARNING"
        assert "LookupError: no such address" in caplog.messages[-1]

    def test_a_snooze_is_no_failure(self, caplog: pytest.LogCaptureFixture) -> None:
        def snoozes(_: Any) -> None:
            raise Snooze(60)

        with caplog.at_level(logging.INFO, "jobs.middleware"), pytest.raises(Snooze):
            attempt("Logging", snoozes)

        assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]

    def test_enqueues_name_the_jobs(self, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": ["jobs.middleware.Logging"]}
        with registry.restored(), caplog.at_level(logging.INFO, "jobs.middleware"):
            handles = job("shipped.echo")(_echo).enqueue_many([{}] * 5)

        first = ", ".join(handle.id for handle in handles[:3])
        assert caplog.messages == [f"shipped.echo enqueued: {first} and 2 more"]


class TestTracing:
    @pytest.fixture(params=["sync", "async"])
    def handler(self, request: pytest.FixtureRequest) -> Callable[[Any], Any]:
        async def awaited(_: Any) -> str:
            await asyncio.sleep(0)
            return trace.get_current_span().get_span_context().span_id.to_bytes(8, "big").hex()

        def blocking(_: Any) -> str:
            return trace.get_current_span().get_span_context().span_id.to_bytes(8, "big").hex()

        return awaited if request.param == "async" else blocking

    def test_an_attempt_is_a_span_around_the_handler(
        self, spans: Callable[[], list[ReadableSpan]], handler: Callable[[Any], Any]
    ) -> None:
        seen_inside = attempt("Tracing", handler)

        (span,) = spans()
        assert (span.name, span.kind) == ("process email.send", SpanKind.CONSUMER)
        assert span.context is not None
        assert seen_inside == span.context.span_id.to_bytes(8, "big").hex()
        assert span.attributes is not None
        assert span.attributes["messaging.message.id"] == "j1"
        assert span.attributes["messaging.destination.name"] == "mail"
        assert span.attributes["mainspring.job.attempt"] == 2

    def test_an_error_is_recorded_and_goes_on(self, spans: Callable[[], list[ReadableSpan]]) -> None:
        with pytest.raises(LookupError):
            attempt("Tracing", fails)

        (span,) = spans()
        assert span.status.status_code is StatusCode.ERROR
        assert [event.name for event in span.events] == ["exception"]

    def test_the_producers_trace_goes_on_in_the_worker(
        self, settings: Any, spans: Callable[[], list[ReadableSpan]]
    ) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": ["jobs.middleware.Tracing"]}
        with registry.restored(), trace.get_tracer("test").start_as_current_span("request"):
            handle = job("shipped.echo")(_echo).using(meta={"tenant": "a"}).enqueue()
        meta = get_job(handle.id).meta

        attempt("Tracing", lambda _: None, meta)

        send, request, process = spans()
        assert meta["tenant"] == "a"
        assert [send.name, request.name, process.name] == ["send shipped.echo", "request", "process email.send"]
        assert send.context is not None
        assert process.context is not None
        assert process.context.trace_id == send.context.trace_id
        assert process.parent is not None
        assert process.parent.span_id == send.context.span_id
        assert send.attributes is not None
        assert send.attributes["messaging.message.id"] == handle.id

    def test_without_the_library_it_steps_aside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)

        assert attempt("Tracing", lambda _: 7) == 7


def _echo() -> None: ...


def test_an_enqueue_outside_any_span_begins_a_trace(spans: Callable[[], list[ReadableSpan]]) -> None:
    request = EnqueueRequest(JobSpec(type="email.send"), [b"{}"])
    chain(["jobs.middleware.Tracing"], lambda given: [], AsgirefBridge())(request)

    assert "traceparent" in request.spec.meta
