"""The schedules: what fires when, how it went, what is late; and what will fire in the next 24 hours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard import forecasts, reads
from dashboard.choices import chosen
from dashboard.firings import STRIP, Line, troubled_first
from dashboard.formats import plural, some
from dashboard.overall import Overall
from dashboard.paging import page_of
from dashboard.panels.base import Badge, Panel
from dashboard.permissions import OPERATE, may
from jobs.api.schedules import ScheduleNotFound, ScheduleStatus
from jobs.core.schedule import preview_of
from jobs.exceptions import SchedulerError

PER_PAGE = 50
FIRINGS_SHOWN = 90
COMING = 5
CHANGES_SHOWN = 10
SEARCH_MAX = 200
FORECAST_AT_ONCE = 200
"""With more schedules than this a page does not wait until all have been asked what they will do."""

Row: TypeAlias = Any  # a row of jobs.models, which the dashboard does not name

STATES: tuple[tuple[str, str], ...] = (
    ("", "any"),
    ("late", "late"),
    ("broken", "cannot fire"),
    ("paused", "paused"),
    ("on", "on"),
    ("disabled", "disabled"),
)


class Schedules(Panel):
    slug = "schedules"
    title = "Schedules"
    icon = "schedules"
    group = "Run"
    key = "s"
    on_phone = True
    badge = Badge("warning", "schedules.late", "late")

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        common = {"may_operate": may(request.user, OPERATE)}
        name = request.GET.get("name", "")
        return common | (_one(request, name, overall) if name else _all(request, overall))


def _all(request: HttpRequest, overall: Overall) -> dict[str, Any]:
    rows = reads.schedules()
    search = request.GET.get("search", "")[:SEARCH_MAX].strip()
    state, problem = chosen(request.GET.get("state", ""), "state of a schedule", dict(STATES))
    matching = troubled_first(_matching(rows, search, state, overall.late), overall.late)
    part = page_of(matching, request.GET, PER_PAGE, kept=("search", "state"))
    lines = _lines(part.items, overall, STRIP)
    return {
        "lines": lines,
        "total": len(rows),
        "sentence": _sentence(rows, overall, lines),
        "search": search,
        "state": state,
        "states": STATES,
        "problems": [problem] if problem else [],
        "part": part,
        "add_url": _admin(request, "add"),
        **_forecast(request, len(rows)),
    }


def _forecast(request: HttpRequest, schedules: int) -> dict[str, Any]:
    """What will fire. Where many are asked, the page does not wait for it: it comes with the first refresh."""
    match = request.resolver_match
    is_refresh = match is not None and match.url_name == "fragment"
    found = reads.forecast(wait=schedules <= FORECAST_AT_ONCE or is_refresh or "forecast" in request.GET)
    return {"forecast": forecasts.firings(found) if found else None, "forecast_comes": found is None}


def _one(request: HttpRequest, name: str, overall: Overall) -> dict[str, Any]:
    try:
        row = reads.schedule(name)
    except ScheduleNotFound as error:
        return {"missing": error, "name": name}
    [line] = _lines([row], overall, FIRINGS_SHOWN)
    found = _preview(line)
    return {
        "one": line,
        "coming": found.items if found else (),
        "warnings": found.warnings if found else (),
        "note": found.note if found else "",
        "changes": reads.schedule_changes(row, CHANGES_SHOWN),
        "edit_url": _admin(request, "change", row.pk),
    }


def _lines(rows: Iterable[Row], overall: Overall, firings: int) -> list[Line]:
    rows = list(rows)
    found = reads.schedule_status([row.name for row in rows], firings)
    return [Line(row, found.get(row.name, ScheduleStatus(name=row.name)), overall.now) for row in rows]


def _preview(line: Line) -> Any:
    """What comes next; nothing for a row that cannot fire."""
    row = line.row
    usual = line.status.usual_seconds
    try:
        return preview_of(row.rule(), row.timezone, COMING, line.now, window=line.window, usual_seconds=usual)
    except SchedulerError:
        return None


_IS: dict[str, Callable[[Row, Collection[str]], bool]] = {
    "late": lambda row, late: row.name in late,
    "broken": lambda row, late: bool(row.error),
    "paused": lambda row, late: row.is_paused,
    "on": lambda row, late: row.enabled and not row.is_paused,
    "disabled": lambda row, late: not row.enabled,
}


def _matching(rows: Iterable[Row], search: str, state: str, late: Collection[str]) -> list[Row]:
    words = search.lower()
    found = [row for row in rows if words in f"{row.name} {row.target} {row.cron}".lower()]
    return [row for row in found if _IS[state](row, late)] if state else found


def _sentence(rows: Iterable[Row], overall: Overall, lines: Collection[Line]) -> str:
    """What is late, also of what the store was not told of yet, and what failed, as far as it is shown."""
    rows = list(rows)
    if not rows:
        return ""
    late = list(dict.fromkeys([*overall.late, *(line.name for line in lines if line.word == "late")]))
    if late:
        return f"Late: {some(late)}."
    broken = sum(bool(row.error) for row in rows)
    failed = sum(line.has_failed for line in lines if not line.row.error)
    paused = sum(row.is_paused for row in rows)
    trouble = [
        f"{plural(broken, 'schedule')} cannot fire" if broken else "",
        f"the last firing of {plural(failed, 'schedule')} failed" if failed else "",
        f"{plural(paused, 'schedule is', 'schedules are')} paused" if paused and not (broken or failed) else "",
    ]
    return "; ".join(["None is late", *filter(None, trouble)]) + "."


def _admin(request: HttpRequest, view: str, *arguments: Any) -> str:
    """The address in the admin, where the project has one, for those who get in there and may do it."""
    user: Any = request.user
    if not (user.is_staff and user.has_perm(f"jobs.{'add' if view == 'add' else 'view'}_schedule")):
        return ""
    with suppress(NoReverseMatch):
        return reverse(f"admin:jobs_schedule_{view}", args=arguments)
    return ""
