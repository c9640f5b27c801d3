"""The audit log as sentences: who did what to which thing, with a link to it; and as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from django.urls import reverse

from dashboard.formats import as_cell, count
from dashboard.links import bulk_url, job_url
from jobs.api.audit import AuditRecord

PAST = {
    "approve": "approved",
    "autoscale": "set the autoscaling of",
    "backfill": "backfilled",
    "cancel": "cancelled",
    "change": "changed",
    "confirm": "confirmed",
    "create": "created",
    "delete": "deleted",
    "discard": "discarded",
    "drain": "told to drain",
    "enqueue": "enqueued",
    "export": "exported, with nothing masked,",
    "limit": "limited",
    "move": "moved",
    "mute": "muted",
    "override": "overrode",
    "pause": "paused",
    "prioritize": "gave another priority to",
    "purge": "purged",
    "reject": "rejected",
    "resubmit": "resubmitted",
    "resume": "resumed",
    "retry": "retried",
    "reveal": "revealed",
    "revoke": "revoked",
    "run": "started",
    "run-now": "started",
    "run_now": "started",
    "scale": "scaled",
    "share": "shared",
    "signal": "signalled",
    "skip": "skipped",
    "start": "started",
    "stop": "told to stop",
    "unmute": "unmuted",
    "update": "changed",
}
LISTED = {"pool": "pools", "schedule": "schedules"}
"""Things that have a page of their own within a panel: noun → slug."""

OPERATION = "bulk operation "
"""What the target of an entry about many jobs begins with; the id of the operation follows."""

EVERY_ONE = 10**12
"""A number from which it only says that any number was agreed to."""

COLUMNS = ("at", "who", "source", "action", "target", "reason", "before", "after")


@dataclass(frozen=True)
class Deed:
    """An entry with its words. ``url`` is empty where there is no page of the thing (any more)."""

    entry: AuditRecord

    @property
    def _noun(self) -> str:
        return self.entry.action.partition(".")[0]

    @property
    def did(self) -> str:
        """``resubmitted job``; before an operation ``asked to resubmit jobs:``. An action without a word of its own is
        shown as it is.
        """
        _, _, verb = self.entry.action.partition(".")
        if verb not in PAST:
            return self.entry.action
        if self.entry.target.startswith(OPERATION):
            return f"asked to {verb.replace('-', ' ')} jobs:"  # what has been done, its page says
        if self._noun == "bulk":
            return f"{PAST[verb]} {OPERATION.strip()}"
        noun = "" if self._noun == "scheduler" or self.number is not None else f" {self._noun}"
        return PAST[verb] + (noun or " everything" if self._noun == "scheduler" else noun)

    @property
    def did_to_it(self) -> str:
        """``resubmitted``, on the page of the thing itself."""
        verb = self.entry.action.partition(".")[2]
        return PAST.get(verb, verb)

    @property
    def number(self) -> int | None:
        """To how many, where it was more than one."""
        after = self.entry.after if isinstance(self.entry.after, dict) else {}
        done = after.get("done", after.get("confirmed"))
        return done if isinstance(done, int) and 1 < done < EVERY_ONE else None

    @property
    def how_many(self) -> str:
        return "" if self.number is None else count(self.number)

    @property
    def url(self) -> str:
        target = self.entry.target
        if target.startswith(OPERATION):
            return bulk_url(target.removeprefix(OPERATION))
        if self._noun == "bulk":
            return bulk_url(target)
        if not target or self.number is not None or self.entry.action.endswith((".delete", ".discard")):
            return ""
        if self._noun == "job":
            return job_url(target)
        if self._noun == "group":
            return f"{reverse('dashboard:dead')}?group={quote(target, safe='')}"
        if self._noun == "worker":
            return reverse("dashboard:workers")
        slug = LISTED.get(self._noun)
        return f"{reverse(f'dashboard:{slug}')}?name={quote(target, safe='')}" if slug else ""


def as_lines(entries: Iterable[AuditRecord]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(entry.as_dict(), ensure_ascii=False) + "\n" for entry in entries)


def as_table(entries: Iterable[AuditRecord]) -> str:
    """CSV with a head."""
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerow(COLUMNS)
    for entry in entries:
        shown = entry.as_dict()
        rows.writerow([_cell(shown[name]) for name in COLUMNS])
    return file.getvalue()


def _cell(value: object) -> str:
    return as_cell(value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False))
