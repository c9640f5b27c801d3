"""Which deaths of jobs somebody still has to be told of.

Dead jobs stand in a line ordered by the moment of their death, so a mark in that order is all there is to keep: nothing
is written when a job dies, whoever has buried it. A host takes a few deaths for a while and moves the mark when it has
told of them; one that ends in between leaves them to another, who tells of them again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobs.core.clock import Clock
from jobs.core.job import Route
from jobs.store.connection import Store
from jobs.store.keys import partition_keys

CLAIM_MS = 60_000
"""How long a host may take to tell of what it has taken, before another does it again."""

AT_ONCE = 10
"""Deaths that are taken at once: as few as would be told again if the host died."""

OLDEST_MS = 86_400_000
"""What happened longer ago, while nobody was there to tell of it, is no news."""


class Deaths(NamedTuple):
    """Ids of jobs that died, and the mark that says that they were told of. No ids: look again in a moment."""

    ids: list[str]
    told: str


class DeathNotices:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def take(self, route: Route, token: str, begun_ms: int) -> Deaths | None:
        """The next deaths of a partition, oldest first; None where there are none, or another host tells of them.

        ``begun_ms``: since when the caller is there to tell; where nobody ever told, it begins with the deaths since.
        """
        now = self._clock.now_ms()
        reply = self._run(
            "death_take",
            route,
            given_now="" if now is None else now,
            token=token,
            claim=CLAIM_MS,
            limit=AT_ONCE,
            oldest=OLDEST_MS,
            begun=begun_ms,
        )
        if not reply:
            return None
        told, *ids = (value.decode(errors="replace") for value in reply)
        return Deaths(ids, told)

    def settle(self, route: Route, token: str, deaths: Deaths) -> bool:
        """They were all told of. False where it took too long and another host tells of them too."""
        return bool(self._run("death_told", route, token=token, told=deaths.told) == b"ok")

    def _run(self, name: str, route: Route, **arguments: Any) -> Any:
        return self._store.run(name, partition_keys(self._store.namespace, route), **arguments)
