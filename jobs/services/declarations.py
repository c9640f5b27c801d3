"""Schedules that the code declares: each owns a row, for as long as live hosts have its declaration."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import router
from django.utils import timezone

from jobs.core.schedule import Cron, Interval, Rule
from jobs.models import Schedule
from jobs.registry import registry

log = logging.getLogger("jobs.schedules")

WITHDRAWN = timedelta(seconds=90)
"""A schedule of the code that no live host has declared for as long is no more."""
WITHDRAWN_WORDS = "The code does not declare it any more."


def declared() -> dict[str, Rule]:
    """The schedules of this process's code: name of the job type → rule."""
    return {job_type.name: job_type.schedule for job_type in registry.all().values() if job_type.schedule is not None}


def declare(using: str | None = None) -> None:
    """Makes the rows of the code's schedules equal to their declarations. A row of a person keeps its name."""
    rows = Schedule.objects.using(using or router.db_for_write(Schedule))
    for name, rule in declared().items():
        row = rows.filter(name=name).first() or Schedule(name=name, owner=Schedule.Owner.CODE)
        if row.owner != Schedule.Owner.CODE:
            log.warning("The schedule %s of the code is not taken in: a schedule of a person has its name", name)
            continue
        fields = _declaration(name, rule)
        if not row._state.adding and all(getattr(row, option) == value for option, value in fields.items()):
            continue
        for option, value in fields.items():
            setattr(row, option, value)
        row.declared_at, row.changed_by, row.error = timezone.now(), "code", ""
        try:
            row.save(using=using)
        except ValidationError as error:
            log.error("The schedule %s of the code cannot be stored: %s", name, "; ".join(error.messages))


def _declaration(name: str, rule: Rule) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "job_type": name,
        "kind": rule.kind,
        "cron": "",
        "interval_seconds": None,
        "timezone": settings.TIME_ZONE,
        "starts_at": None,
        "enabled": True,
    }
    if isinstance(rule, Cron):
        fields |= {"cron": rule.expression, "timezone": rule.timezone or settings.TIME_ZONE}
    elif isinstance(rule, Interval):
        fields |= {"interval_seconds": rule.every.total_seconds(), "starts_at": rule.anchor}
    return fields


def declare_again() -> None:
    """Says that the code of this process still has its schedules, and ends those that no host has any more."""
    now = timezone.now()
    of_code = Schedule.objects.filter(owner=Schedule.Owner.CODE)
    here = of_code.filter(name__in=declared())
    here.update(declared_at=now)
    here.filter(enabled=False).update(enabled=True, error="")
    of_code.filter(enabled=True, declared_at__lt=now - WITHDRAWN).update(enabled=False, error=WITHDRAWN_WORDS)
