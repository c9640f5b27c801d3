"""The reader's time zone: kept in a cookie, current in Django while a page of the dashboard is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import available_timezones

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard import reads
from dashboard.links import own_address
from dashboard.permissions import requires
from dashboard.shell import shell
from jobs.core.schedule import zone_named
from jobs.exceptions import SchedulerError

COOKIE = "timezone"
NAME_MAX = 64
PATH_OF = "dashboard:overview"
"""Everything below this address is shown in the reader's zone. The admin is not: what is typed into its forms would be
read in that zone too."""


class ReadersZone:
    """Middleware. Without a choice, or with one that is no zone, times are in UTC."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith(reverse(PATH_OF)):
            return self.get_response(request)
        with timezone.override(chosen(request)):
            return self.get_response(request)


def chosen(request: HttpRequest) -> tzinfo:
    """The zone of the reader's cookie; UTC without one."""
    try:
        return zone_named(request.COOKIES.get(COOKIE, "UTC")[:NAME_MAX])
    except SchedulerError:
        return UTC


@require_http_methods(["GET", "HEAD", "POST"])
@requires()
def choose(request: HttpRequest) -> HttpResponseBase:
    """A form for the zone, and what is chosen in it: kept for a year."""
    back = own_address(request, request.POST.get("next") or request.GET.get("next", "")) or reverse(PATH_OF)
    context = shell(reads.overall()) | {"zones": _names(), "back": back}
    if request.method != "POST":
        return render(request, "dashboard/zone.html", context)
    wanted = request.POST.get("zone", "").strip()[:NAME_MAX]
    try:
        zone_named(wanted)
    except SchedulerError as error:
        return render(request, "dashboard/zone.html", context | {"wanted": wanted, "problem": error}, status=400)
    response = redirect(back)
    response.set_cookie(
        COOKIE,
        wanted,
        max_age=timedelta(days=365),
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )
    return response


@lru_cache(maxsize=1)
def _names() -> list[str]:
    """Every zone that this machine knows, ``UTC`` first."""
    return ["UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))]
