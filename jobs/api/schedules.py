"""Schedules: what an expression would do. Stored schedules come to stand beside it."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.utils import timezone as clock

from jobs.api.asynchronous import twin
from jobs.core import schedule
from jobs.core.schedule import Preview


def preview(
    expression: str,
    timezone: str | None = None,
    count: int = 5,
    from_: datetime | None = None,
    *,
    name: str = "",
) -> Preview:
    """The next ``count`` firings of a cron expression after ``from_`` (now), its words, and warnings.

    ``timezone`` is an IANA name, by default the project's ``TIME_ZONE``; ``name`` the name of the schedule, from which
    ``H`` draws. Needs no server. Raises ScheduleInvalid with the reason and what to write instead.
    """
    return schedule.preview(
        expression,
        settings.TIME_ZONE if timezone is None else timezone,
        count,
        clock.now() if from_ is None else from_,
        name=name,
    )


apreview = twin(preview)
