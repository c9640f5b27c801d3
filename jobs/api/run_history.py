"""How workflows have been doing: what is known of each, its last runs, its success rate and how long it takes.

Read from the history in the database (``jobs.services.run_recorder``), so it reaches further back than the store, and
lags behind it by some seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any

import msgspec
from django.db.models import Count
from django.utils import timezone

from jobs.api.asynchronous import twin
from jobs.core.job import iso
from jobs.models import RunRecord, Workflow

DAYS = 30
RUNS = 24
"""Last runs that are listed of each workflow."""
MOST_COUNTED = 20_000
"""Runs that one summary looks at, the newest: of a busier system it covers fewer days, and says so."""


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that has ended."""

    id: str
    state: str
    created_at: datetime
    finished_at: datetime
    seconds: float
    version: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {**_fields(self), "created_at": iso(self.created_at), "finished_at": iso(self.finished_at)}


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Of several runs. Seconds are None where no run succeeded."""

    ended: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    median_seconds: float | None = None
    """How long runs that succeeded took."""

    @property
    def success_rate(self) -> float | None:
        """Of those that succeeded or failed; None where none did. What people cancelled says nothing about it."""
        judged = self.succeeded + self.failed
        return self.succeeded / judged if judged else None

    @property
    def median(self) -> timedelta | None:
        return None if self.median_seconds is None else timedelta(seconds=self.median_seconds)

    def as_dict(self) -> dict[str, Any]:
        return {**_fields(self), "success_rate": self.success_rate}


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that ended on one day, in the current time zone."""

    day: date
    totals: Totals

    def as_dict(self) -> dict[str, Any]:
        return {"day": self.day.isoformat(), **self.totals.as_dict()}


class DefinitionView(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow: what is stored of it (nothing, where it is started from code) and how it has been doing."""

    name: str
    version: int | None = None
    """None: it is not stored."""
    nodes: int | None = None
    description: str = ""
    changed_at: datetime | None = None
    changed_by: str = ""
    totals: Totals
    trend: Sequence[Day]
    """Days with runs, oldest first."""
    last: Sequence[PastRun]
    """Newest first."""
    slower: float | None = None
    """How many times longer it took in the newer half of its successful runs than in the older; None: too few."""

    def as_dict(self) -> dict[str, Any]:
        return {
            **_fields(self),
            "changed_at": iso(self.changed_at),
            "totals": self.totals.as_dict(),
            "trend": [day.as_dict() for day in self.trend],
            "last": [run.as_dict() for run in self.last],
        }


def definitions(*, days: int = DAYS, runs: int = RUNS) -> Sequence[DefinitionView]:
    """All workflows that are stored or ended a run in the last ``days``, by name; three queries for all of them.

    ``runs``: how many of its last ones are listed of each.
    """
    since = timezone.now() - timedelta(days=days)
    past: defaultdict[str, list[PastRun]] = defaultdict(list)
    for name, *facts in RunRecord.objects.filter(finished_at__gte=since).values_list("workflow", *_COLUMNS)[
        :MOST_COUNTED
    ]:
        past[name].append(PastRun(**dict(zip(_NAMES, facts, strict=True))))
    stored = {row.name: row for row in Workflow.objects.annotate(size=Count("nodes", distinct=True))}
    return [_view(name, stored.get(name), past[name], runs) for name in sorted({*stored, *past})]


def _view(name: str, row: Any, past: Sequence[PastRun], runs: int) -> DefinitionView:
    by_day: defaultdict[date, list[PastRun]] = defaultdict(list)
    for run in reversed(past):
        by_day[timezone.localtime(run.finished_at).date()].append(run)
    known = {}
    if row is not None:
        known = {name: getattr(row, name) for name in ("version", "description", "changed_at", "changed_by")}
    return DefinitionView(
        name=name,
        nodes=None if row is None else row.size,
        totals=_totals(past),
        trend=[Day(day=day, totals=_totals(of)) for day, of in by_day.items()],
        last=past[:runs],
        slower=_slower(past),
        **known,
    )


def _totals(past: Sequence[PastRun]) -> Totals:
    counts = {state: sum(run.state == state for run in past) for state in ("succeeded", "failed", "cancelled")}
    took = _took(past)
    return Totals(ended=len(past), median_seconds=round(median(took), 3) if took else None, **counts)


def _slower(past: Sequence[PastRun]) -> float | None:
    took = _took(past)
    half = len(took) // 2
    if half < 3:
        return None
    newer, older = median(took[:half]), median(took[half:])
    return round(newer / older, 2) if older else None


def _took(past: Iterable[PastRun]) -> list[float]:
    return [run.seconds for run in past if run.state == "succeeded"]


def _fields(one: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


_COLUMNS = ("run", "state", "created_at", "finished_at", "seconds", "version")
_NAMES = ("id", *_COLUMNS[1:])

adefinitions = twin(definitions, uses_database=True)

__all__ = ["DefinitionView", "PastRun", "Totals", "adefinitions", "definitions"]
