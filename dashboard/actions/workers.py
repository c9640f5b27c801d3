"""What people may do to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard import reads
from dashboard.actions.base import Action, Order, Told
from dashboard.actions.pausing import PauseForm, options
from jobs import api


def _pause(order: Order) -> Told:
    given = options(order.values)
    api.workers.pause(order.id, reason=given["reason"], until=given["until"])
    return Told(f"Host {order.id} takes nothing new.")


def _resume(order: Order) -> Told:
    api.workers.resume(order.id)
    return Told(f"Host {order.id} takes jobs again.")


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
        verb="pause",
        label="Pause",
        says="This host takes no new jobs; they wait for other hosts. What runs goes on. The pause ends with the host.",
        perform=_pause,
        panel="workers",
        form=PauseForm,
    ),
    WorkerAction(
        noun="worker",
        verb="resume",
        label="Resume",
        says="This host takes jobs again.",
        perform=_resume,
        panel="workers",
    ),
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
