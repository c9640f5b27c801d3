"""Errors and job types whose dead jobs need nobody for a while: who said so, why, and until when."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from jobs.core.clock import Clock
from jobs.store.connection import Store
from jobs.store.keys import MuteKeys

MuteKind = Literal["group", "type"]


class Mute(msgspec.Struct, frozen=True, kw_only=True):
    """One that holds. ``subject``: the fingerprint of the error, or the name of the type; ``words``: what people call
    it. Times are server milliseconds.
    """

    kind: MuteKind
    subject: str
    until_ms: int
    who: str = ""
    reason: str = ""
    words: str = ""


class Mutes:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._keys = MuteKeys(store.namespace)

    def set(self, mute: Mute) -> None:
        """From now on this one holds for its subject."""
        facts = b"%d " % mute.until_ms + msgspec.json.encode(mute)
        self._run(f"{mute.kind}:{mute.subject}", facts)

    def end(self, kind: MuteKind, subject: str) -> bool:
        """It shouts again; False where it was not muted (any more)."""
        return bool(self._run(f"{kind}:{subject}", b"") == b"1")

    def all(self) -> list[Mute]:
        """Those that hold now, the first to end first."""
        stored: Any = self._store.read(lambda client: client.hvals(self._keys.mutes))
        now = self._clock.now_ms()
        if stored and now is None:
            now = self._store.time_ms()
        found = [mute for facts in stored if (mute := _read(facts)) is not None and mute.until_ms > (now or 0)]
        return sorted(found, key=lambda mute: (mute.until_ms, mute.subject))

    def _run(self, name: str, facts: bytes) -> Any:
        now = self._clock.now_ms()
        return self._store.run("mute_set", self._keys, given_now="" if now is None else now, name=name, facts=facts)


def _read(facts: bytes) -> Mute | None:
    """None for what went bad: it mutes nothing."""
    try:
        return msgspec.json.decode(facts.partition(b" ")[2], type=Mute)
    except msgspec.MsgspecError:
        return None
