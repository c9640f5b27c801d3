"""``/schedules``: what fires when, and acting on it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from dashboard.api import answers, paging
from dashboard.api.access import acting, seen
from dashboard.api.bodies import Reason
from dashboard.api.words import Paging
from jobs import api

router = Router(tags=["schedules"])


@router.get("", auth=seen, response=answers.Schedules)
def list_schedules(request: HttpRequest, words: Query[Paging]) -> Any:
    """Schedules by name, with their next and last firing."""
    return paging.page(_read, words.cursor, words.size)


def _read(cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    rows, following = api.schedules.page(cursor or "", limit)
    stands = api.schedules.status([row.name for row in rows], firings=1)
    return [api.schedules.document(row, stands[row.name]) for row in rows if row.name in stands], following


@router.post("/{thing:name}/run", auth=acting("schedule.run"), response=answers.Handle)
def run(request: HttpRequest, name: str, order: Reason | None = None) -> Any:
    """Makes a job of it now. Its rhythm does not move."""
    return api.schedules.run(name).as_dict()


@router.post("/{thing:name}/pause", auth=acting("schedule.pause"), response=answers.Schedule)
def pause(request: HttpRequest, name: str, order: Reason | None = None) -> Any:
    """Records its firings as skipped from now on; they are never made up."""
    row = api.schedules.pause(name, reason=order.reason if order else "")
    return api.schedules.shown_fields(row.as_dict())


@router.post("/{thing:name}/resume", auth=acting("schedule.resume"), response=answers.Schedule)
def resume(request: HttpRequest, name: str, order: Reason | None = None) -> Any:
    """Ends the pause."""
    return api.schedules.shown_fields(api.schedules.resume(name).as_dict())


@router.get("/{thing:name}", auth=seen, response=answers.ScheduleWithFirings)
def show(request: HttpRequest, name: str) -> Any:
    """One schedule: its definition, its next and last firings."""
    return api.schedules.shown_document(name)
