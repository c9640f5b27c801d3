"""Which pools a worker serves, and how many slots each has here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from jobs.conf import Settings
from jobs.engine import Engine
from jobs.registry import registry
from jobs.worker.cells import MAX_SLOTS
from jobs.worker.options import WorkerOptions


class Sizes:
    """Follows what people set, and which pools there are."""

    def __init__(self, engine: Engine, options: WorkerOptions) -> None:
        self._engine = engine
        self._options = options

    def pools(self, known: Collection[str]) -> Iterator[tuple[str, int]]:
        """Name and number of slots of each, of a process that has no more than ``MAX_SLOTS``. ``known``: all there
        are."""
        configured = self._engine.pools.configured()
        left = MAX_SLOTS
        for name in self._options.pools or sorted({*known, *self._declared()}):
            size = min(self._slots_of(name, configured), left)
            left -= size
            yield name, size

    @property
    def _settings(self) -> Settings:
        return self._engine.settings

    def _declared(self) -> set[str]:
        """Pools that code and settings speak of: served from the start, so that their first job need not wait."""
        return {job_type.pool for job_type in registry.all().values()} | self._settings.pools.keys()

    def _slots_of(self, pool: str, configured: Mapping[str, int]) -> int:
        """What people set while this host runs; else the command line, what was set before, and the settings."""
        settings, chosen = self._settings, configured.get(pool)
        if (shared := self._options.shared_slots) is not None:
            return shared if chosen is None else min(chosen, shared)
        if self._options.concurrency and chosen == self._options.configured.get(pool):
            return self._options.concurrency
        return settings.pools.get(pool, settings.slots) if chosen is None else chosen
