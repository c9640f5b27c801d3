"""Ends a ``--burst`` host when nothing is ready, due or running in the pools it serves."""

from __future__ import annotations

from collections.abc import Callable

from jobs.engine import Engine, Pool
from jobs.worker.options import WorkerOptions

LOOK_SECONDS = 0.1


class BurstWatch:
    """``tick`` asks the store only when the children have found nothing to do."""

    def __init__(
        self,
        engine: Engine,
        options: WorkerOptions,
        is_idle: Callable[[], bool],
        has_slots: Callable[[str], bool],
        on_over: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._options = options
        self._is_idle = is_idle
        self._has_slots = has_slots
        self._on_over = on_over

    def tick(self) -> float:
        if self._is_idle() and not self._is_work_left():
            self._on_over()
        return LOOK_SECONDS

    def _is_work_left(self) -> bool:
        """Also what other hosts run counts: it may come back; and ends of nodes that no run has heard of. Parked jobs
        do not: nobody here may run them."""
        pools = [
            pool for pool in self._engine.pools.all() if not self._options.pools or pool.name in self._options.pools
        ]
        if any(pool.leased or (pool.ready > pool.parked and self._may_run(pool)) for pool in pools):
            return True
        return bool(self._engine.outbox.routes_with_news(self._engine.topology.partitions()))

    def _may_run(self, pool: Pool) -> bool:
        """Whether its jobs begin here sooner or later, if nobody changes what is set."""
        if pool.paused or pool.max_running == 0:
            return False
        return self._has_slots(pool.name) or self._is_autoscaled(pool.name)

    def _is_autoscaled(self, pool: str) -> bool:
        settings = self._engine.pools.settings().get(pool)
        return settings is not None and settings.is_autoscaled
