"""What must be known everywhere at once: changed settings of pools and types, pauses, new pools, jobs that were parked.
Waiting costs nothing.

Each change leaves its topic in a short stream; whoever listens then reads the thing itself. So an entry that was
trimmed, or a connection that broke, costs at most the time until a listener looks by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobs.store.connection import Store
from jobs.store.keys import SettingKeys

TOPICS = ("topology", "pools", "types", "pauses", "parked")
"""What a listener must look at that begins: a pool may have come into being before it heard anything."""

FROM_THE_START = "0-0"

KEPT = 1000
"""About as many entries are kept; see lua/include/tell.lua."""


class Item(NamedTuple):
    """``about``: what it concerns, where the topic alone does not say it."""

    topic: str
    about: str = ""


class News:
    """One listener: it has heard everything up to its place in the stream. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = SettingKeys(store.namespace)
        self._heard: str | None = None

    def wait(self, timeout: float) -> list[Item]:
        """What came since the last call, or within ``timeout`` seconds, oldest first.

        The first call answers each of ``TOPICS`` at once: what came before it was not heard. Raises StoreUnavailable;
        what is missed meanwhile is heard at the next call.
        """
        if self._heard is None:
            self._heard = self._newest()
            return [Item(topic) for topic in TOPICS]
        entries = self._store.wait_for_entries(self._keys.news, self._heard, timeout)
        if entries:
            self._heard = entries[-1][0]
        return [Item(_text(fields, b"topic"), _text(fields, b"about")) for _, fields in entries]

    def tell(self, topic: str, about: str = "") -> None:
        """Tells every listener, and no one else: a hint, for what is stored and found in another way too."""
        entry = {"topic": topic, "about": about}
        self._store.call(lambda client: client.xadd(self._keys.news, entry, maxlen=KEPT, approximate=True))

    def _newest(self) -> str:
        newest: Any = self._store.read(lambda client: client.xrevrange(self._keys.news, count=1))
        return newest[0][0].decode() if newest else FROM_THE_START


def _text(fields: dict[bytes, bytes], name: bytes) -> str:
    return fields.get(name, b"").decode(errors="replace")
