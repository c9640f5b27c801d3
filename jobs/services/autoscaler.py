"""Sizes the pools that are to be sized by a machine: by how long their jobs wait (``jobs.core.autoscale``).

One host at a time does it, under a fenced right that it renews with each tick; one that was frozen past it can write
nothing. The others ask again and again, and one of them goes on when it is gone.
"""

from __future__ import annotations

import logging
from math import inf

from jobs.core.autoscale import SLOTS_ARE_FREE, Sighting, decide
from jobs.engine import Autoscale, Engine, Pool, PoolSettings
from jobs.engine.scaling import Scaling
from jobs.exceptions import LeaseLost

log = logging.getLogger("jobs.autoscaler")

EVERY_SECONDS = 10.0
"""As often as the measured rates move. Where a rule cools down sooner, the age of the oldest job is worth a look."""

SHORTEST_SECONDS = 1.0
"""However soon it does; and after a look that found slots free though jobs wait: with few slots it may have met one
between two jobs, and a pool that is too small shall not wait for that."""

IDLE_SECONDS = 60.0
"""Where no pool is to be sized; a pool that is changed is heard of at once."""

HOLD_SECONDS = 35.0
"""For as long the right is held: three ticks may fail before another host takes over."""


class Autoscaler:
    name = "autoscaler"

    def __init__(self, engine: Engine, holder: str) -> None:
        self._engine = engine
        self._holder = holder
        self.every = IDLE_SECONDS

    def tick(self) -> dict[str, int]:
        pools = {name: settings for name, settings in self._engine.pools.settings().items() if settings.autoscale}
        self.every = min(map(_seconds_between_looks, pools.values()), default=IDLE_SECONDS)
        token = self._engine.scalings.take(self._holder, int(HOLD_SECONDS * 1000)) if pools else None
        changed = 0
        if token is not None:
            everything = self._engine.pauses.state().everything
            try:
                for name, settings in pools.items():
                    made = self._scale(token, name, settings, is_paused=everything is not None)
                    changed += made is not None and made.is_change and not made.dry_run
                    if made is not None and made.reason == SLOTS_ARE_FREE:
                        self.every = SHORTEST_SECONDS
            except LeaseLost:
                log.info("another host does the autoscaling now")
        return {"scaled": changed}

    def _scale(self, token: str, name: str, settings: PoolSettings, *, is_paused: bool) -> Scaling | None:
        """What is decided over one pool; None where there is nothing to decide."""
        rule = settings.autoscale
        if rule is None or not self._engine.topology.has(name):
            return None
        pool, now_ms = self._engine.pools.get(name), self._engine.pauses.now_ms()
        history = self._engine.scalings.history(name)
        seen = _sighting(pool, settings, is_paused=is_paused, since_change=_since_change(history, rule, now_ms))
        made = self._engine.scalings.decided(token, name, seen, decide(rule, seen), at_ms=now_ms, dry_run=rule.dry_run)
        if made.is_change:
            would = "would go" if rule.dry_run else "goes"
            log.info("pool %s %s from %d to %d slots: %s", name, would, made.before, made.after, made.reason)
        return made


def _seconds_between_looks(settings: PoolSettings) -> float:
    cooldown = settings.autoscale.cooldown_seconds if settings.autoscale else EVERY_SECONDS
    return min(max(cooldown, SHORTEST_SECONDS), EVERY_SECONDS)


def _sighting(pool: Pool, settings: PoolSettings, *, is_paused: bool, since_change: float) -> Sighting:
    return Sighting(
        slots=pool.slots,
        workers=pool.workers,
        ready=pool.ready - pool.parked,
        running=pool.leased,
        predicted_wait_seconds=pool.predicted_wait_seconds,
        oldest_wait_seconds=pool.oldest_ready_age_seconds,
        is_paused=is_paused or pool.paused is not None,
        max_running=settings.max_running,
        since_change_seconds=since_change,
    )


def _since_change(history: list[Scaling], rule: Autoscale, now_ms: int) -> float:
    """Seconds since the last change of the kind that would be made now: carried out, or not."""
    changes = [made.last_at_ms for made in history if made.is_change and made.dry_run == rule.dry_run]
    return (now_ms - changes[-1]) / 1000 if changes else inf
