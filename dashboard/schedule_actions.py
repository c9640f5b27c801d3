"""Acting on schedules. Each action asks first, on a page that works with and without script."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from dashboard import reads
from dashboard.actions import own_address
from dashboard.permissions import OPERATE, VIEW, may, requires
from dashboard.schedule_verbs import VERBS, Verb
from dashboard.shell import shell
from jobs import api
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable

REASON_MAX = 200


@require_GET
@requires(VIEW)
def confirm(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Says what is about to happen. Changes nothing."""
    action = _verb(request, verb)
    name = request.GET.get("id", "")
    back = own_address(request, request.GET.get("next", "")) or reverse("dashboard:schedules")
    context = shell(reads.overall()) | {"action": action, "name": name, "back": back, "reason_max": REASON_MAX}
    return render(request, "dashboard/confirm_schedule.html", context)


@require_POST
@requires(VIEW)
def act(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Does it to the schedule named by ``id``, and says on the page that it came from what came of it."""
    action = _verb(request, verb)
    name = request.POST.get("id", "")
    try:
        reason = request.POST.get("reason", "").strip()[:REASON_MAX]
        with api.audit.acting(request.user.get_username(), "dashboard"):
            text = action.perform(name, request.user.get_username(), reason)
    except OutcomeUnknown:
        return _told(request, False, f"{reads.TROUBLE} It is not known whether this was done: look before you repeat.")
    except StoreUnavailable:
        return _told(request, False, f"{reads.TROUBLE} Nothing was done.")
    except SchedulerError as error:
        return _told(request, False, f"{error} {error.fix}".strip())
    except DatabaseError as error:
        return _told(request, False, f"The database that holds the schedules cannot be used: {error}. Try again.")
    return _told(request, True, text)


def _verb(request: HttpRequest, verb: str) -> Verb:
    action = VERBS.get(verb)
    if action is None:
        raise Http404
    if not may(request.user, OPERATE):
        raise PermissionDenied(OPERATE)
    return action


def _told(request: HttpRequest, ok: bool, text: str) -> HttpResponse:
    (messages.success if ok else messages.error)(request, text)
    response = redirect(own_address(request, request.POST.get("next", "")) or reverse("dashboard:schedules"))
    response.status_code = 303
    return response
