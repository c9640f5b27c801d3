"""What people may do to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard import reads
from dashboard.actions.base import Action, Order, Told
from jobs import api


def _drain(order: Order) -> Told:
    api.workers.drain(order.id)
    return Told(f"{order.id} takes nothing new, finishes what runs, and ends.")


def _stop(order: Order) -> Told:
    api.workers.stop(order.id)
    return Told(f"{order.id} stops: what has not ended within its grace goes back.")


@dataclass(frozen=True, kw_only=True)
class WorkerAction(Action):
    def pools_of(self, ids: tuple[str, ...]) -> frozenset[str]:
        """Those that the workers serve; of a host, those of its workers."""
        return frozenset(
            pool for worker in reads.workers() if worker.id in ids or worker.host in ids for pool in worker.pools
        )


ACTIONS: tuple[Action, ...] = (
    WorkerAction(
        noun="worker",
        verb="drain",
        label="Drain",
        says="It takes nothing new, finishes what runs however long that takes, and ends.",
        perform=_drain,
        panel="workers",
        final=True,
    ),
    WorkerAction(
        noun="worker",
        verb="stop",
        label="Stop",
        says="It ends as on SIGTERM: what runs may finish within the grace of its host, the rest goes back and runs "
        "again.",
        perform=_stop,
        panel="workers",
        final=True,
    ),
)
