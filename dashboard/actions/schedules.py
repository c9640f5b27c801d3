"""What people may do to a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any

from django import forms
from django.db import DatabaseError
from django.http import QueryDict
from django.utils import timezone

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Refused, Told, key_for
from dashboard.actions.matching import NumberForm, number_of
from dashboard.filters import moment_of
from dashboard.formats import count, moment, plural
from jobs import api
from jobs.api.reach import Reach
from jobs.exceptions import DuplicateJob

BACKFILL_SECONDS = 8.0
"""So long a page works on a backfill."""


class ScheduleForm(ActionForm):
    def prepare(self) -> None:
        self.fields["reason"].widget.attrs["placeholder"] = "incident 212"


def _run(order: Order) -> Told:
    try:
        job = _with_database(api.schedules.run, order.id, by=order.by, id=order.key)
    except DuplicateJob:
        return Told(f"{order.id} had been started already: job {order.key}.")
    return Told(f"{order.id} was started: job {job.id}.")


def _pause(order: Order) -> Told:
    _with_database(api.schedules.pause, order.id, by=order.by, reason=order.values["reason"])
    return Told(f"{order.id} is paused.")


def _resume(order: Order) -> Told:
    _with_database(api.schedules.resume, order.id, by=order.by)
    return Told(f"{order.id} goes on.")


FIRST_THE_RANGE = "First the range; then it is counted."


class BackfillForm(NumberForm):
    """First the range; once it is known how many firings lie in it, their number is agreed to."""

    field_order = ("start", "end", "typed", "reason")
    start = forms.CharField(
        label="From", max_length=40, widget=forms.TextInput({"placeholder": "2d, 2026-01-31T09:00"})
    )
    end = forms.CharField(label="Until", max_length=40, required=False, widget=forms.TextInput({"placeholder": "now"}))

    def prepare(self) -> None:
        super().prepare()
        if self.given.get("number"):
            del self.fields["start"], self.fields["end"]
            return
        for name in ("start", "end"):
            self.fields[name].initial = self.given.get(name)


def _range(given: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """The moments that were written; a length of time reaches back from now. Refused."""
    now = timezone.now()
    start = moment_of(str(given.get("start", ""))[:40].strip(), now)
    end = moment_of(str(given.get("end", ""))[:40].strip() or "0s", now)
    if start is None or end is None:
        raise Refused("Write a time such as 2026-01-31T09:00 or 2d for two days ago.")
    return start, end


def _backfill(order: Order) -> Told:
    """Works while a person waits; what is left is asked for again, and nothing is made twice."""
    start, end = _range(order.given)
    counted = _with_database(api.schedules.backfill_count, order.id, start=start, end=end)
    if number_of(order.given.get("number")) != counted:
        raise Refused("The number of firings is another one by now. Count again.", status=409)
    until = monotonic() + BACKFILL_SECONDS
    made = there = total = 0
    with closing(_with_database(api.schedules.backfill, order.id, start=start, end=end, by=order.by)) as steps:
        for step in steps:
            made, there, total = step.made, step.there, step.total
            if monotonic() > until:
                break
    left = total - made - there
    text = f"{order.id}: {plural(made, 'job')} made" + (f", {count(there)} were there already" if there else "")
    return Told(f"{text}. {count(left)} are left: ask again for the same range." if left else f"{text}.", ok=not left)


def _with_database(verb: Any, name: str, **options: Any) -> Any:
    try:
        return verb(name, **options)
    except DatabaseError as error:
        raise Refused(
            f"The database that holds the schedules cannot be used: {error}. Try again.", status=503
        ) from error


@dataclass(frozen=True, kw_only=True)
class ScheduleAction(Action):
    def pools_of(self, ids: tuple[str, ...]) -> Reach:
        return reads.reach_of_schedules(ids)


@dataclass(frozen=True, kw_only=True)
class RunAction(ScheduleAction):
    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        return replace(super().question(ids, given), hidden=(key_for(given),))


@dataclass(frozen=True, kw_only=True)
class BackfillAction(ScheduleAction):
    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        name = ids[0] if ids else ""
        if not given.get("start"):
            return Question(f"Backfill {name}", FIRST_THE_RANGE, ids, chooses=True)
        try:
            start, end = _range(given)
        except Refused as wrong:
            return Question(f"Backfill {name}", FIRST_THE_RANGE, ids, chooses=True, problem=str(wrong))
        number = api.schedules.backfill_count(name, start, end)
        return Question(
            f"Backfill {name} with up to {plural(number, 'job')}?",
            self.says,
            ids,
            number=number,
            detail=f"From {moment(start)} until {moment(end)}, both included. A firing that has its job already gets "
            "no second one.",
            hidden=(("number", str(number)), ("start", start.isoformat()), ("end", end.isoformat())),
            nothing_left="No firing lies in this range.",
        )


ACTIONS: tuple[Action, ...] = (
    RunAction(
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
    BackfillAction(
        noun="schedule",
        verb="backfill",
        label="Backfill",
        says="The jobs of all firings in the range are made, oldest first, each with its time of firing. For a slow "
        "backfill at a rate: manage.py schedules backfill --rate.",
        perform=_backfill,
        panel="schedules",
        form=BackfillForm,
    ),
)
