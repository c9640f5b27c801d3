"""The columns of the list of schedules: how each stands, what it did, when it fires next.

What the rows do not know is read from the store once per page; a store that is away costs a page those columns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.admin.mirrored import PATIENCE_SECONDS, UNKNOWN
from jobs.api import budget, schedules
from jobs.api.schedules import ScheduleStatus
from jobs.core.pause import by_whom
from jobs.core.schedule import zone_named
from jobs.core.schedule.strip import strip
from jobs.core.wording import length
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

FIRINGS = 24
"""Firings in the strip."""

PENDING = {"running", "waiting"}
WORDS = {"failed": "died", "waiting": "waits", "fired": "fired, its job is kept no more"}
"""Outcomes whose word on the page is another."""


class ScheduleChangeList(ChangeList):
    """Reads how the schedules of the page stand, after its rows are known."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if request.method == "GET":  # what an action was submitted for would never be seen
            add_status(request, self.result_list)


def add_status(request: HttpRequest, rows: Collection[Schedule]) -> None:
    """Puts ``status`` on each row: how it stands, or None."""
    found: dict[str, ScheduleStatus] = {}
    try:
        with budget(PATIENCE_SECONDS):
            found = schedules.status([row.name for row in rows], FIRINGS)
    except SchedulerError as error:
        messages.warning(request, f"What schedules did is missing: the store is unreachable. {error} {error.fix}")
    for row in rows:
        setattr(row, "status", found.get(row.name))  # noqa: B010 - not a field of the model


class StateFilter(admin.SimpleListFilter):
    """By how they stand. Which ones are late, only the store knows."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("late", "Late"),
            ("broken", "Cannot fire"),
            ("paused", "Paused"),
            ("on", "On"),
            ("disabled", "Disabled"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> QuerySet[Schedule]:
        match self.value():
            case "late":
                return queryset.filter(name__in=_late(request))
            case "broken":
                return queryset.exclude(error="")
            case "paused":
                return queryset.filter(paused_at__isnull=False)
            case "on":
                return queryset.filter(enabled=True, paused_at=None)
            case "disabled":
                return queryset.filter(Q(enabled=False))
        return queryset


def _late(request: HttpRequest) -> list[str]:
    try:
        with budget(PATIENCE_SECONDS):
            return [schedule.name for schedule in schedules.late()]
    except SchedulerError as error:
        messages.warning(request, f"Which schedules are late is not known: the store is unreachable. {error}")
        return []


class ScheduleColumns:
    """Columns for ``list_display``."""

    @admin.display(description="when", ordering="cron")
    def when(self, schedule: Schedule) -> SafeString:
        try:
            words = schedule.rule().describe()
        except SchedulerError:
            words = ""  # the state says why
        expression = schedule.cron if schedule.kind == "cron" else ""
        return format_html(
            '{}<div class="schedule-quiet"><code>{}</code> {}<br>{}</div>',
            words,
            expression,
            schedule.timezone,
            schedule.target,
        )

    @admin.display(description="state")
    def state(self, schedule: Schedule) -> str | SafeString:
        status = _status(schedule)
        word = schedules.state_word(schedule, status)
        if word == "paused":
            return f"paused {by_whom(schedule.paused_by or 'somebody', schedule.paused_reason)}"
        if word == "late" and status is not None:
            return _trouble(f"late by {span(status.late_seconds or 0)}: {status.late_why}")
        error = (status.error if status else "") or schedule.error
        if word == "disabled" or not error:
            return word
        first, _, _ = error.partition(". ")  # what to write instead stands on its page
        return _trouble(f"{word}: {first}")

    @admin.display(description=f"last firings, up to {FIRINGS}", empty_value=UNKNOWN)
    def last(self, schedule: Schedule) -> str | SafeString | None:
        status = _status(schedule)
        if status is None:
            return None
        if status.last is None:
            return "none yet"
        took = f", took {span(status.last.run_seconds)}" if status.last.run_seconds is not None else ""
        return format_html(
            '{}{} <span class="schedule-quiet schedule-cells" title="{}">{} ago</span><br>{}',
            WORDS.get(status.last.outcome, status.last.outcome),
            took,
            status.last.fired_at.isoformat(timespec="seconds"),
            span((timezone.now() - status.last.fired_at).total_seconds()),
            _drawn(status),
        )

    @admin.display(description="next", empty_value=UNKNOWN)
    def next(self, schedule: Schedule) -> str | SafeString | None:
        status = _status(schedule)
        if status is None:
            return None
        if status.next_at is None:
            is_waited_for = schedule.enabled and not status.fired and not schedule.error
            return "not known yet" if is_waited_for else "never"
        local = status.next_at.astimezone(zone_named(schedule.timezone))
        seconds = (status.next_at - timezone.now()).total_seconds()
        return format_html(
            '<div class="schedule-cells">{}<div class="schedule-quiet">{}</div></div>',
            f"in {span(seconds)}" if seconds >= 0 else f"was due {span(-seconds)} ago",
            f"{local:%a %H:%M:%S %Z}",
        )


def _status(schedule: Schedule) -> ScheduleStatus | None:
    return getattr(schedule, "status", None)


def _trouble(words: str) -> SafeString:
    return format_html('<span class="schedule-late">{}</span>', words)


def span(seconds: float) -> str:
    """``12 ms``, ``2.3 s``, ``45 s``, ``4 min``, ``3 h 17 min``, ``12 days``: as much as a list has to say."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 60:
        return length(seconds) if seconds < 10 else f"{int(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 2880 else f"{minutes // 1440} days"


def _drawn(status: ScheduleStatus) -> SafeString:
    usual = status.usual_seconds
    drawn = strip(
        (
            "pending" if view.outcome in PENDING else view.outcome,
            view.run_seconds / usual if view.run_seconds is not None and usual else None,
        )
        for view in reversed(status.firings)
    )
    return format_html(
        '<svg class="schedule-strip" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>',
        drawn.label,
        drawn.width,
        drawn.height,
        drawn.width,
        drawn.height,
        format_html_join("", '<path class="{}" d="{}"/>', drawn.paths),
    )
