"""Schedules that should have fired."""

from __future__ import annotations

from django.urls import reverse

from dashboard.formats import plural
from dashboard.needs.need import Need
from dashboard.overall import Overall


def schedule_needs(overall: Overall) -> list[Need]:
    if not overall.late:
        return []
    url = f"{reverse('dashboard:schedules')}?state=late"
    if len(overall.late) == 1:
        before, noun, are = "Schedule ", overall.late[0], " is late"
    else:
        before, noun, are = "", plural(len(overall.late), "schedule"), " are late"
    cause = "It should have fired" if len(overall.late) == 1 else "They should have fired"
    why = "no worker is alive" if not overall.workers else "nobody has fired it yet"
    about = ("schedule", overall.late[0])
    return [Need("warning", before, noun, url, are, f"{cause}, and {why}.", action="Open schedules", about=about)]
