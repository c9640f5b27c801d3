"""Sends the signals of ended attempts, once the store has accepted their end: in a thread of its own, for receivers may
take their time and use the database. Costs nothing while nobody is connected to a signal."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from django.dispatch import Signal

from jobs.core.context import Context
from jobs.engine import Completion, Failure
from jobs.runtime.announcing import announce
from jobs.signals import job_died, job_finished, job_retrying
from jobs.worker import database


class Event(NamedTuple):
    """A signal that is to be sent if the store answers so."""

    signal: Signal
    sender: object
    answer: str
    arguments: dict[str, Any]


def is_anybody_listening() -> bool:
    """To the ends of attempts: else nothing needs to be remembered of them."""
    return bool(job_finished.receivers or job_retrying.receivers or job_died.receivers)


class Herald:
    """``expect`` from slots, ``hear`` from whoever learns what the store made of an end."""

    def __init__(self) -> None:
        self._expected: dict[tuple[str, str], Event] = {}
        self._accepted: SimpleQueue[Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def expect(self, end: Completion | Failure, sender: object, context: Context | None, value: Any) -> None:
        """This end is on its way to the store. ``value``: what the handler returned or raised."""
        if (event := _event_of(end, sender, context, value)) is not None:
            self._expected[str(end.id), end.token] = event

    def hear(self, ends: Iterable[Completion | Failure], answers: Sequence[str]) -> None:
        """What the store answered. An end that it did not accept has not happened."""
        if not self._expected:
            return
        for end, answer in zip(ends, answers, strict=False):
            event = self._expected.pop((str(end.id), end.token), None)
            if event is not None and event.answer == answer:
                self._accepted.put(event)
        if self._thread is None and not self._accepted.empty():
            self._thread = threading.Thread(target=self._run, name="herald", daemon=True)
            self._thread.start()

    @property
    def backlog(self) -> int:
        """Events that receivers have not been told of."""
        return self._accepted.qsize() + self._busy

    def finish(self, timeout: float) -> None:
        """Tell what is left, as far as ``timeout`` seconds allow."""
        if self._thread is not None:
            self._accepted.put(None)
            self._thread.join(timeout)

    def _run(self) -> None:
        database.adopt_thread()
        while (event := self._next()) is not None:
            self._busy = True
            database.close_stale()
            announce(event.signal, event.sender, **event.arguments)
            database.close_stale()
            self._busy = False
        database.close_all()

    def _next(self) -> Event | None:
        """None: there will be no more. What receivers left open is closed when it grows stale."""
        while True:
            try:
                return self._accepted.get(timeout=database.seconds_until_stale())
            except Empty:
                database.close_stale()


def _event_of(end: Completion | Failure, sender: object, context: Context | None, value: Any) -> Event | None:
    facts: dict[str, Any] = {"job_id": str(end.id), "context": context}
    if isinstance(end, Completion):
        return Event(job_finished, sender, "ok", facts | {"result": value})
    if end.outcome == "retry":
        return Event(job_retrying, sender, "retry_wait", facts | {"error": value, "delay": end.delay_ms / 1000})
    if end.outcome == "dead":
        return Event(job_died, sender, "dead", facts | {"error": value})
    return None
