"""What people see of a schedule: the columns of the lists, and the facts of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from jobs.api.schedules import FiringView, ScheduleStatus, document, shown_fields, state_word
from jobs.core.schedule import Rule
from jobs.exceptions import SchedulerError
from jobs.management.durations import spoken
from jobs.management.output import Column

if TYPE_CHECKING:
    from jobs.api.forecast import ForecastMinute
    from jobs.models import Schedule, ScheduleChange


class Shown(NamedTuple):
    """A schedule and how it stands."""

    row: Schedule
    status: ScheduleStatus

    def as_dict(self) -> dict[str, Any]:
        return document(self.row, self.status)


def standing(shown: Shown) -> str:
    """How it stands, and by how much it is late."""
    word, late = state_word(*shown), shown.status.late_seconds
    return f"late {spoken(timedelta(seconds=late))}" if word == "late" and late is not None else word


def rule_words(row: Schedule) -> str:
    """When it fires, as it was written."""
    if row.kind == "cron":
        return f"{row.cron} ({row.timezone})"
    try:
        rule: Rule = row.rule()
    except SchedulerError:
        return str(row.kind)
    return rule.describe()


def last_words(view: FiringView | None) -> str | None:
    """What became of the last firing."""
    if view is None:
        return None
    return f"{view.outcome}: {view.reason}" if view.outcome == "skipped" else view.outcome


SCHEDULES: tuple[Column[Shown], ...] = (
    Column("NAME", lambda shown: shown.row.name),
    Column("STATE", standing),
    Column("TYPE", lambda shown: shown.row.target),
    Column("WHEN", lambda shown: rule_words(shown.row)),
    Column("NEXT", lambda shown: shown.status.next_at),
    Column("LAST", lambda shown: shown.status.last.due_at if shown.status.last else None),
    Column("OUTCOME", lambda shown: shown.status.error or last_words(shown.status.last), elastic=True),
)

FIRED: tuple[Column[FiringView], ...] = (
    Column("DUE", lambda view: view.due_at),
    Column("OUTCOME", lambda view: view.outcome),
    Column("LATE", lambda view: timedelta(seconds=view.lateness_seconds) if view.outcome != "skipped" else None),
    Column("TOOK", lambda view: None if view.run_seconds is None else timedelta(seconds=view.run_seconds)),
    Column("COUNT", lambda view: "many" if view.count is None else view.count, right=True),
    Column("JOB", lambda view: view.job_id),
    Column("REASON", lambda view: view.reason + (f" by {view.by}" if view.by else ""), elastic=True),
)

CHANGES: tuple[Column[ScheduleChange], ...] = (
    Column("VERSION", lambda change: change.version, right=True),
    Column("AT", lambda change: change.at),
    Column("BY", lambda change: change.by),
    Column("ACTION", lambda change: change.action),
)

MINUTES: tuple[Column[ForecastMinute], ...] = (
    Column("MINUTE", lambda minute: f"{minute.at:%Y-%m-%d %H:%M}Z"),
    Column("FIRINGS", lambda minute: minute.count, right=True),
    Column("CROWDED", lambda minute: minute.crowded),
    Column("SCHEDULES", lambda minute: _named(minute), elastic=True),
)


def _named(minute: ForecastMinute) -> str:
    return ", ".join(minute.names) + (f" and {minute.more:,} more" if minute.more else "")


def facts_of(row: Schedule, status: ScheduleStatus) -> Iterator[tuple[str, object]]:
    """Names and values of what one schedule is and how it stands."""
    yield "name", row.name
    yield "state", standing(Shown(row, status))
    yield "late because", status.late_why or None
    yield "error", status.error or None
    yield "job type", row.job_type or None
    yield "workflow", row.workflow or None
    payload = json.dumps(shown_fields(row.as_dict())["payload"], ensure_ascii=False)
    yield "payload", payload if row.payload else None
    yield "when", rule_words(row)
    yield "next", status.next_at
    yield "waits for the job before", status.waiting_for
    yield "fired", status.fired
    yield "usually takes", None if status.usual_seconds is None else timedelta(seconds=status.usual_seconds)
    for name in ("pool", "priority", "max_retries", "timeout", "starts_at", "ends_at", "max_firings"):
        yield name.replace("_", " "), getattr(row, name) if getattr(row, name) != "" else None
    yield "jitter", timedelta(seconds=row.jitter_seconds) if row.jitter_seconds else None
    yield "missed runs", f"{row.missed} (grace {row.grace_seconds:g}s)"
    yield "overlap", row.overlap
    yield "owner", row.owner
    yield "paused", f"by {row.paused_by}: {row.paused_reason}" if row.is_paused else None
