"""Removing what is over: retention, claims whose job is gone, traces of workers that are gone."""

from __future__ import annotations

from jobs.core.job import Route
from jobs.engine.batches import READ_BATCH, batches
from jobs.engine.holders import Holders
from jobs.engine.jobs import Jobs
from jobs.engine.leases import Leases
from jobs.engine.series import Series
from jobs.engine.taking import worker_of
from jobs.engine.workers import Workers
from jobs.store.connection import Store
from jobs.store.topology import Topology


class Upkeep:
    def __init__(
        self, store: Store, topology: Topology, jobs: Jobs, leases: Leases, workers: Workers, series: Series
    ) -> None:
        self._topology = topology
        self._jobs = jobs
        self._leases = leases
        self._workers = workers
        self._series = series
        self._directory = Holders(store, "ids")
        self._unique = Holders(store, "unique")

    def prune_partition(self, route: Route) -> int:
        """Forgets jobs whose retention is over, old voided ids, grants of workers that are gone; how many things."""
        known = {worker.id for worker in self._workers.all() if worker.alive}
        gone = [seat for seat in self._leases.grant_holders(route) if worker_of(seat) not in known]
        return self._leases.prune(route) + self._leases.tidy(route, gone)

    def fold_figures(self, route: Route) -> int:
        """Carries what was counted into totals and series, and drops what these keep no longer; how many 10 seconds."""
        return self._series.fold([route])

    def sweep_claims(self, bucket: int) -> int:
        """Drops the claims of one bucket (of 256) whose job is gone, and unique keys whose job has ended; how many."""
        dropped = 0
        for claims in batches(self._directory.sweep(bucket), limit=READ_BATCH):
            jobs = self._jobs.get_many(job_id for job_id, _ in claims)
            for (job_id, holder), job in zip(claims, jobs, strict=True):
                if job is None and self._is_abandoned(job_id):
                    dropped += self._directory.drop(job_id, holder)
        for claims in batches(self._unique.sweep(bucket), limit=READ_BATCH):
            jobs = self._jobs.get_many(job_id for _, job_id in claims)
            for (name, job_id), job in zip(claims, jobs, strict=True):
                if not self._jobs.unique_keys.holds(job, name) if job else self._is_abandoned(job_id):
                    dropped += self._unique.drop(name, job_id)
        return dropped

    def _is_abandoned(self, job_id: str) -> bool:
        """Gone, and made sure that no producer that is still on its way brings it into being under this claim."""
        return self._jobs.settled(job_id) is None and self._jobs.void(job_id)
