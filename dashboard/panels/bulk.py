"""Bulk operations: what was asked for by whom, how far it is, and what became of each job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from dashboard import reads
from dashboard.filters import words_of
from dashboard.formats import count, duration, exactly, plural
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.trials import trial_of
from jobs.api import BulkNotFound, BulkOperation
from jobs.core.bulk import ALLOWED
from jobs.core.job import moment

REFUSALS_SHOWN = 50

STATES = {
    "selecting": "leased",
    "waiting": "blocked",
    "running": "leased",
    "stopping": "leased",
    "done": "succeeded",
    "cancelled": "cancelled",
}
"""State of an operation → the state of a job in whose colour and shape it is shown."""

WORDS = {"selecting": "counting", "waiting": "waits for you", "stopping": "stopping"}

DONE = {
    "resubmit": "resubmitted",
    "discard": "discarded",
    "cancel": "cancelled",
    "run-now": "made ready",
    "move": "moved",
    "prioritize": "given another priority",
}


@dataclass(frozen=True)
class Line:
    """An operation as a page shows it."""

    operation: BulkOperation
    now: datetime

    @property
    def mark(self) -> str:
        return STATES[self.operation.state]

    @property
    def word(self) -> str:
        return WORDS.get(self.operation.state, self.operation.state)

    @property
    def title(self) -> str:
        """``Resubmit 4,812 jobs``"""
        action = self.operation.request.action
        verb = "Set priority of" if action == "prioritize" else action.replace("-", " ").capitalize()
        many = "jobs" if self.operation.state == "selecting" else exactly(self.operation.total, "job")
        return f"Undo: {verb.lower()} {many}" if self.operation.request.undoes else f"{verb} {many}"

    @property
    def go_on(self) -> str:
        """What its button does while it waits: ``Resubmit 4,812 jobs``, after a trial ``Resubmit the other 4,802``."""
        if not self.operation.handled:
            return self.title
        verb = self.title.rpartition(exactly(self.operation.total, "job"))[0].strip()
        return f"{verb} the other {self.left:,}"

    @property
    def call_off(self) -> str:
        """What the button says that ends it. ``Cancel`` would say the contrary beside ``Cancel 4,812 jobs``."""
        return "Stop here" if self.operation.handled else "Call it off"

    @property
    def filter(self) -> str:
        """What they had to match, as words; states that go without saying are left out."""
        if self.operation.request.undoes:
            return "what the operation did that is undone"
        if self.operation.request.chosen:
            return "chosen one by one"
        return words_of(self.operation.request.filter, leave_out=ALLOWED[self.operation.request.action])

    @property
    def opened_at(self) -> datetime:
        return moment(self.operation.opened_at_ms)

    @property
    def ended_at(self) -> datetime | None:
        return moment(self.operation.ended_at_ms) if self.operation.ended_at_ms else None

    @property
    def until(self) -> datetime:
        return self.operation.request.filter.until or self.opened_at

    @property
    def begins_in(self) -> float:
        """Seconds until it begins to act; 0 where it has begun or need not wait."""
        if self.operation.state != "running" or self.operation.handled:
            return 0.0
        return max(0.0, (moment(self.operation.begins_at_ms) - self.now).total_seconds())

    @property
    def begins_at(self) -> datetime:
        return moment(self.operation.begins_at_ms)

    @property
    def left(self) -> int:
        return self.operation.total - self.operation.handled

    @property
    def sentence(self) -> str:
        """``212 of 4,812 resubmitted, 2 not: see below. About 40 s left.``"""
        operation = self.operation
        done = DONE[operation.request.action]
        match operation.state:
            case "selecting" if not operation.looked:
                return "None has been looked at yet."
            case "selecting":
                found = plural(operation.total, "job matches", "jobs match")
                return f"{found} of {count(operation.looked)} looked at so far."
            case "waiting" if not operation.handled:
                return f"{exactly(operation.total, 'job matches', 'jobs match')}. Nothing has been done yet."
            case "waiting":
                return f"{exactly(operation.done, 'job')} of {operation.total:,} {done} to try."
        if self.begins_in:
            return f"{exactly(operation.total, 'job')} will be {done} in {duration(self.begins_in)}."
        text = f"{operation.done:,} of {exactly(operation.total, 'job')} {done}"
        text += f", {operation.refused:,} could not be" if operation.refused else ""
        text += f", of {operation.unsure:,} it is not known" if operation.unsure else ""
        if operation.state == "cancelled":
            return f"{text}. The other {self.left:,} are as they were." if self.left else f"{text}."
        return f"{text}. {self._forecast}".strip()

    @property
    def _forecast(self) -> str:
        operation = self.operation
        if operation.is_over or not operation.handled or not operation.began_at_ms:
            return ""
        if operation.request.rate:
            return f"About {duration(self.left / operation.request.rate)} left."
        passed = (self.now - moment(operation.began_at_ms)).total_seconds()
        return f"About {duration(passed / operation.handled * self.left)} left." if passed > 1 else ""


class Bulk(Panel):
    slug = "bulk"
    title = "Bulk operations"
    icon = "jobs"
    key = ""
    refresh_seconds = 1.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        id = request.GET.get("id", "")[:100]
        if not id:
            return {"lines": [Line(found, overall.now) for found in reads.bulk_operations()]}
        try:
            operation = reads.bulk_operation(id)
        except BulkNotFound as error:
            return {"missing": error}
        return {
            "one": Line(operation, overall.now),
            "trial": trial_of(operation, overall),
            "refusals": reads.bulk_refusals(id, REFUSALS_SHOWN) if operation.refused else {},
            "unattended": not operation.is_over and operation.state != "waiting" and not overall.hosts,
        }


def under_way(overall: Overall) -> list[Line]:
    """Those that somebody should know of where jobs are listed: not over yet."""
    return [Line(found, overall.now) for found in reads.bulk_operations() if not found.is_over]
