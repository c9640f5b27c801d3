"""The other end of ``webhook.dispatch``: checks every delivery, and can be told to fail as real receivers do.

It remembers in this process only, which fits one development server; a real receiver keeps nonces and delivery ids in
its database, under a unique constraint.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from threading import Lock
from typing import Any, NamedTuple

from samples import webhooks

REMEMBERED = 10_000
"""Nonces and deliveries kept, oldest forgotten first."""

TRIES_WHEN_FLAKY = 3


class Behaviour(StrEnum):
    """How the receiver treats genuine deliveries; the last part of its path."""

    ACCEPT = "accept"  # takes each
    FLAKY = "flaky"  # busy (503, with Retry-After) until the third try of a delivery
    DOWN = "down"  # always an internal error (500)
    GONE = "gone"  # says that it will never take one (410)


class Reply(NamedTuple):
    """What the receiver answers. ``retry_after`` is in seconds."""

    status: int
    content: dict[str, Any]
    retry_after: int | None = None


class Receiver:
    """Safe for use by several threads."""

    def __init__(self) -> None:
        self.outage = False
        """While set, every genuine delivery is answered with 503, whatever the path says."""
        self._lock = Lock()
        self._nonces: OrderedDict[str, None] = OrderedDict()
        self._tries: OrderedDict[str, int] = OrderedDict()
        self._accepted: OrderedDict[str, None] = OrderedDict()

    def receive(self, body: bytes, *, delivery: str, signature: str, behaviour: Behaviour, now: float) -> Reply:
        """Judges one request. ``now`` is in Unix seconds."""
        try:
            nonce = webhooks.verify(body, delivery=delivery, signature=signature, key=webhooks.secret(), now=now)
        except webhooks.SignatureInvalid as error:
            return Reply(401, {"error": str(error)})
        with self._lock:
            if nonce in self._nonces:
                return Reply(409, {"error": "This request was received before: a replay"})
            _remember(self._nonces, nonce, None)
            tries = self._tries.get(delivery, 0) + 1
            _remember(self._tries, delivery, tries)
            if self.outage:
                return Reply(503, {"error": "The receiver is switched off"})
            if behaviour is Behaviour.DOWN:
                return Reply(500, {"error": "Something broke while handling the delivery"})
            if behaviour is Behaviour.GONE:
                return Reply(410, {"error": "This endpoint was closed"})
            if behaviour is Behaviour.FLAKY and tries < TRIES_WHEN_FLAKY:
                return Reply(503, {"error": f"Busy at try {tries}"}, retry_after=1)
            # At least once means that a delivery may come again after it was taken: say so, and do nothing twice.
            known = delivery in self._accepted
            _remember(self._accepted, delivery, None)
        return Reply(200, {"accepted": delivery, "duplicate": known, "tries": tries})

    def forget(self) -> None:
        """Back to the first day."""
        with self._lock:
            self.outage = False
            for memory in (self._nonces, self._tries, self._accepted):
                memory.clear()


def _remember(memory: OrderedDict[str, Any], key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > REMEMBERED:
        memory.popitem(last=False)


receiver = Receiver()
