"""``jobs.middleware.Logging``: a line in the log when an attempt begins and when it ends, and for each enqueue."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any

from jobs.core.context import Context
from jobs.core.job import EnqueueRequest
from jobs.core.retry import Cancelled, Retry, Snooze
from jobs.exceptions import JobCancelled
from jobs.middleware.around import Around, Outcome

log = logging.getLogger("jobs.middleware")

WANTED = (Retry, Snooze, Cancelled, JobCancelled)
"""Ends that the handler or a person chose: no trouble."""

SHOWN_IDS = 3
"""Of jobs that were enqueued together: how many are named."""


class Logging(Around):
    """Logs to ``jobs.middleware``: INFO for starts, ends and enqueues, WARNING for what raised. It hides nothing."""

    def around(self, given: Context | EnqueueRequest) -> AbstractContextManager[Outcome]:
        return _attempt(given) if isinstance(given, Context) else _enqueue(given)


@contextmanager
def _attempt(context: Context) -> Iterator[Outcome]:
    name = f"{context.type} {context.id}"
    log.info("%s started, attempt %d", name, context.attempt)
    began = perf_counter()
    try:
        yield Outcome()
    except WANTED as end:
        log.info("%s ended after %.3f s: %s", name, perf_counter() - began, type(end).__name__)
        raise
    except BaseException as error:
        log.warning("%s failed after %.3f s: %s: %s", name, perf_counter() - began, type(error).__name__, error)
        raise
    log.info("%s succeeded after %.3f s", name, perf_counter() - began)


@contextmanager
def _enqueue(request: EnqueueRequest) -> Iterator[Outcome]:
    outcome = Outcome()
    try:
        yield outcome
    except Exception as error:
        log.warning("%s was not enqueued: %s: %s", request.spec.type, type(error).__name__, error)
        raise
    log.info("%s enqueued: %s", request.spec.type, _names(outcome.result or ()))


def _names(handles: Sequence[Any]) -> str:
    named = ", ".join(handle.id for handle in handles[:SHOWN_IDS])
    more = len(handles) - SHOWN_IDS
    return f"{named} and {more} more" if more > 0 else named
