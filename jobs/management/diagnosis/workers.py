"""Whether somebody serves the pools in which jobs wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs import api
from jobs.api import Pool, Worker
from jobs.core.job import iso, moment
from jobs.management.diagnosis.finding import Finding


def judge_workers() -> Iterator[Finding]:
    workers, pools = api.workers.list(), api.pools.list()
    alive = [worker for worker in workers if worker.alive and not worker.is_host]
    yield from _judge_service(alive, pools)
    for host in workers:
        if host.alive and host.is_host and host.paused:
            yield Finding(
                "workers",
                "warning",
                f"Worker host {host.id} takes no new jobs: {host.paused}.",
                "workers",
                f"End the pause: manage.py workers resume {host.id}",
            )
    for worker in alive:
        if worker.state.startswith("not consuming") and not worker.paused:
            yield Finding(
                "workers", "failed", f"Worker {worker.id} is {worker.state}.", "runworkers", "Look at its log."
            )
    for worker in workers:
        if not worker.alive:
            yield Finding(
                "workers",
                "warning",
                f"Worker {worker.id} has been silent since {iso(moment(worker.last_seen_ms))}.",
                "runworkers",
                "If it was killed on purpose, its row goes by itself within an hour.",
            )


def _judge_service(alive: Sequence[Worker], pools: Sequence[Pool]) -> Iterator[Finding]:
    """Whether somebody serves each pool in which jobs are ready to run."""
    if not alive:
        waiting = sum(pool.ready for pool in pools)
        yield Finding(
            "workers",
            "failed" if waiting else "warning",
            f"No worker is running; jobs ready to run: {waiting:,}.",
            "runworkers",
            "Start one: manage.py runworkers",
        )
        return
    served = {pool for worker in alive for pool in worker.pools}
    yield Finding("workers", "ok", f"{len(alive)} alive, serving {', '.join(sorted(served)) or 'no pool'}")
    for pool in pools:
        if pool.ready and pool.name not in served:
            yield Finding(
                "workers",
                "failed",
                f"No live worker serves pool {pool.name}; jobs ready to run: {pool.ready:,}.",
                "runworkers",
                f"Start one: manage.py runworkers --pool {pool.name}",
            )
