"""Autoscaling as the store keeps it: whose turn it is to decide, and what was decided."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.autoscale import Decision, Sighting
from jobs.core.clock import Clock
from jobs.core.job import iso, moment
from jobs.store.codec.ids import new_token
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys

SERVICE = "autoscaler"

KEPT = 100
"""Decisions that a pool remembers. One that is taken again and again counts once."""


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, with what it was based on. Slots are per worker process; times are server ms.

    ``times``: taken so often in a row, first at ``at_ms`` and last at ``last_at_ms``; the facts are those of the last
    time. ``dry_run``: it was not carried out.
    """

    at_ms: int
    last_at_ms: int
    before: int
    after: int
    reason: str
    dry_run: bool = False
    times: int = 1
    ready: int = 0
    running: int = 0
    workers: int = 0
    predicted_wait_seconds: float | None = None
    oldest_wait_seconds: float | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def as_dict(self) -> dict[str, Any]:
        shown = msgspec.to_builtins(self)
        return {"at": iso(moment(shown.pop("at_ms"))), "last_at": iso(moment(shown.pop("last_at_ms"))), **shown}

    def is_like(self, other: Scaling) -> bool:
        """Whether it says the same once more."""
        return (self.before, self.after, self.reason, self.dry_run) == (
            other.before,
            other.after,
            other.reason,
            other.dry_run,
        )


_decode = msgspec.msgpack.Decoder(list[Scaling]).decode


class Scalings:
    """Raises StoreUnavailable, and LeaseLost where another host has taken the service over."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._keys = SettingKeys(store.namespace)

    def take(self, holder: str, ttl_ms: int) -> str | None:
        """The right to decide, for ``ttl_ms``: its token, or None while another host has it."""
        reply = self._store.run(
            "service_take",
            self._keys,
            given_now=self._now(),
            service=SERVICE,
            holder=holder,
            token=new_token(),
            ttl=ttl_ms,
        )
        return reply[0].decode() or None

    def history(self, pool: str) -> list[Scaling]:
        """The last decisions over a pool, oldest first."""
        raw: Any = self._store.read(lambda client: client.hget(self._keys.scalings, pool))
        try:
            return _decode(raw) if raw else []
        except msgspec.MsgspecError:
            return []

    def decided(
        self, token: str, pool: str, seen: Sighting, decision: Decision, *, at_ms: int, dry_run: bool
    ) -> Scaling:
        """Writes a decision down and, unless it is a dry run, carries it out. Only under the token that is held now."""
        made = Scaling(
            at_ms=at_ms,
            last_at_ms=at_ms,
            before=seen.slots,
            after=decision.slots,
            reason=decision.reason,
            dry_run=dry_run,
            ready=seen.ready,
            running=seen.running,
            workers=seen.workers,
            predicted_wait_seconds=seen.predicted_wait_seconds,
            oldest_wait_seconds=seen.oldest_wait_seconds,
        )
        history = self.history(pool)
        if history and made.is_like(history[-1]):
            first = history.pop()
            made = msgspec.structs.replace(made, at_ms=first.at_ms, times=first.times + 1)
        self._store.run(
            "pool_autoscale",
            self._keys,
            given_now=self._now(),
            token=token,
            pool=pool,
            decisions=msgspec.msgpack.encode([*history, made][-KEPT:]),
            slots=decision.slots if made.is_change and not dry_run else "",
        )
        return made

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now
