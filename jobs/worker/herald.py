"""Sends the signals of ended attempts, once the store has accepted their end: in a thread of its own, for receivers may
take their time and use the database. Costs nothing while nobody is connected to a signal."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from django.dispatch import Signal

from jobs.engine import Completion, Failure
from jobs.worker import database

log = logging.getLogger("jobs.worker")


class Event(NamedTuple):
    """A signal that is to be sent if the store answers so."""

    signal: Signal
    sender: object
    answer: str
    arguments: dict[str, Any]


def send(signal: Signal, sender: object, arguments: dict[str, Any]) -> None:
    """To all receivers, whatever some of them raise."""
    for receiver, response in signal.send_robust(sender, **arguments):
        if isinstance(response, Exception):
            log.error("a receiver of a job signal failed: %r", receiver, exc_info=response)


class Herald:
    """``expect`` from slots, ``hear`` from whoever learns what the store made of an end."""

    def __init__(self) -> None:
        self._expected: dict[tuple[str, str], Event] = {}
        self._accepted: SimpleQueue[Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def expect(self, job_id: str, token: str, event: Event) -> None:
        """The end of this lease is on its way to the store."""
        self._expected[job_id, token] = event

    def hear(self, ends: Iterable[Completion | Failure], answers: Sequence[str]) -> None:
        """What the store answered. An end that it did not accept has not happened."""
        if not self._expected:
            return
        for end, answer in zip(ends, answers, strict=True):
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
            send(event.signal, event.sender, event.arguments)
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
