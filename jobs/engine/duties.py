"""Duties that one host at a time has: whoever asks first, until it asks no more."""

from __future__ import annotations

from jobs.core.clock import Clock
from jobs.store.codec.ids import new_token
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys


class Duties:
    """Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def take(self, duty: str, holder: str, ttl_ms: int) -> bool:
        """Takes a duty for ``ttl_ms``, or keeps it for as long from now; False while another holder has it."""
        now = self._clock.now_ms()
        token, _, _ = self._store.run(
            "service_take",
            SettingKeys(self._store.namespace),
            given_now="" if now is None else now,
            service=duty,
            holder=holder,
            token=new_token(),
            ttl=ttl_ms,
        )
        return bool(token)
