"""What people may do to a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Refused, Told
from jobs import api


class ScheduleForm(ActionForm):
    def prepare(self) -> None:
        self.fields["reason"].widget.attrs["placeholder"] = "incident 212"


def _run(order: Order) -> Told:
    job = _with_database(api.schedules.run, order.id, by=order.by)
    return Told(f"{order.id} was started: job {job.id}.")


def _pause(order: Order) -> Told:
    _with_database(api.schedules.pause, order.id, by=order.by, reason=order.values["reason"])
    return Told(f"{order.id} is paused.")


def _resume(order: Order) -> Told:
    _with_database(api.schedules.resume, order.id, by=order.by)
    return Told(f"{order.id} goes on.")


def _with_database(verb: Any, name: str, **options: Any) -> Any:
    try:
        return verb(name, **options)
    except DatabaseError as error:
        raise Refused(
            f"The database that holds the schedules cannot be used: {error}. Try again.", status=503
        ) from error


@dataclass(frozen=True, kw_only=True)
class ScheduleAction(Action):
    def pools_of(self, ids: tuple[str, ...]) -> frozenset[str]:
        return reads.pools_of_schedules(ids)


ACTIONS: tuple[Action, ...] = (
    ScheduleAction(
        noun="schedule",
        verb="run",
        label="Run now",
        says="One job is made at once. The rhythm does not move.",
        perform=_run,
        panel="schedules",
        key="r",
    ),
    ScheduleAction(
        noun="schedule",
        verb="pause",
        label="Pause",
        says="It makes no jobs until it is resumed. What would have fired meanwhile is recorded as skipped and never "
        "made up. Jobs that it has made already run on.",
        perform=_pause,
        panel="schedules",
        form=ScheduleForm,
        key="p",
    ),
    ScheduleAction(
        noun="schedule",
        verb="resume",
        label="Resume",
        says="It fires again from its next time on. What was due in the pause is not made up.",
        perform=_resume,
        panel="schedules",
        key="p",
    ),
)
