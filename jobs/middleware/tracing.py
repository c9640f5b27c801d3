"""``jobs.middleware.Tracing``: a span for each enqueue and for each attempt, all of them in the producer's trace.

The trace's context travels in the job's ``meta`` (``traceparent`` and its like, as the configured propagator writes
them), so it survives retries, restarts and the move to other machines. Without ``opentelemetry-api`` the middleware
steps aside.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
from django.core.exceptions import MiddlewareNotUsed

from jobs.conf import get_settings
from jobs.core.context import Context
from jobs.core.job import EnqueueRequest
from jobs.core.redaction import Redaction
from jobs.core.retry import Cancelled, Retry, Snooze
from jobs.exceptions import JobCancelled
from jobs.middleware.around import Around, Outcome
from jobs.middleware.chain import Call

WANTED = (Retry, Snooze, Cancelled, JobCancelled)
"""Ends that are no errors of the attempt; the span names them and keeps its good status."""


class Tracing(Around):
    """Spans ``send <type>`` (producer) and ``process <type>`` (consumer), with the attributes of messaging systems."""

    def __init__(self, call: Call) -> None:
        try:  # not at the top: it takes its time, and most processes trace nothing
            import opentelemetry.propagate as propagate
            import opentelemetry.trace as trace
        except ImportError:
            raise MiddlewareNotUsed("opentelemetry-api is not installed") from None
        super().__init__(call)
        self._propagate = propagate
        self._trace = trace

    def around(self, given: Context | EnqueueRequest) -> AbstractContextManager[Outcome]:
        return self._attempt(given) if isinstance(given, Context) else self._enqueue(given)

    @contextmanager
    def _enqueue(self, request: EnqueueRequest) -> Iterator[Outcome]:
        spec, outcome = request.spec, Outcome()
        attributes = _attributes("send", spec.type, spec.pool)
        attributes["messaging.batch.message_count"] = len(request.payloads)
        with self._tracer.start_as_current_span(
            f"send {spec.type}", kind=self._trace.SpanKind.PRODUCER, attributes=attributes
        ) as span:
            carrier: dict[str, str] = {}
            self._propagate.inject(carrier)
            if carrier:
                request.spec = msgspec.structs.replace(spec, meta={**spec.meta, **carrier})
            yield outcome
            if outcome.result and len(outcome.result) == 1:
                span.set_attribute("messaging.message.id", outcome.result[0].id)

    @contextmanager
    def _attempt(self, context: Context) -> Iterator[Outcome]:
        attributes = _attributes("process", context.type, context.pool)
        attributes |= {"messaging.message.id": context.id, "mainspring.job.attempt": context.attempt}
        with self._tracer.start_as_current_span(
            f"process {context.type}",
            context=self._propagate.extract(context.meta),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield Outcome()
            except WANTED as end:
                span.set_attribute("mainspring.job.ended_by", type(end).__name__)
                raise
            except BaseException as error:
                self._note(span, error)
                raise

    def _note(self, span: Any, error: BaseException) -> None:
        """What was raised, without the secrets that its texts spell out."""
        redaction = Redaction(get_settings().redact_keys)
        message = redaction.text(str(error))
        trace = redaction.text("".join(traceback.format_exception(error)))
        span.record_exception(error, {"exception.message": message, "exception.stacktrace": trace})
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, f"{type(error).__name__}: {message}"))

    @property
    def _tracer(self) -> Any:
        """Asked for each time: a project may set its provider after the first job."""
        return self._trace.get_tracer("mainspring")


def _attributes(operation: str, job_type: str, pool: str) -> dict[str, Any]:
    return {
        "messaging.system": "mainspring",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": pool,
        "mainspring.job.type": job_type,
    }
