"""The one address of an action: GET asks, POST does it, whatever it is done to."""

from __future__ import annotations

import logging
from functools import partial

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import reads
from dashboard.actions import BY_SLUG
from dashboard.actions.base import Action, ActionForm, Order, Refused, Told
from dashboard.links import own_address
from dashboard.overall import TROUBLE, UNREACHABLE, trouble_of
from dashboard.panels import BY_SLUG as PANELS
from dashboard.permissions import VIEW, closed_pools, may, refuse_closed, requires
from dashboard.shell import shell
from jobs import api
from jobs.exceptions import (
    OptionInvalid,
    OutcomeUnknown,
    PayloadInvalid,
    PayloadTooLarge,
    SchedulerError,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""At most so many things are acted on by id in one request."""

ASKED_FROM = 101
"""So many are acted on at one press no more: it is asked first."""

ID_MAX = 300

AS_TYPED = (PayloadInvalid, PayloadTooLarge, OptionInvalid)
"""What is wrong with the answers, and not with the thing: they can be put right where they stand."""


@require_http_methods(["GET", "POST"])
@requires(VIEW)
def action(request: HttpRequest, noun: str, verb: str) -> HttpResponseBase:
    """Asks (GET, or a POST with ``ask`` where a selection is too long for an address) or does it (POST).

    ``id``, repeatable, says to what; ``next`` where to go afterwards; the rest are the fields of the action's form.
    """
    found = BY_SLUG.get(f"{noun}.{verb}")
    if found is None:
        raise Http404
    if not may(request.user, found.permission):
        raise PermissionDenied(found.permission)
    given = request.POST if request.method == "POST" else request.GET
    ids = tuple(dict.fromkeys(id[:ID_MAX] for id in given.getlist("id")))[:AT_ONCE]
    try:
        refuse_closed(request.user, found.reach(ids, given) if closed_pools(request.user) else frozenset())
    except UNREACHABLE as error:
        return _answer(request, found, Told(f"{trouble_of(error)[0]} Nothing was done.", ok=False, status=503))
    except SchedulerError as error:  # of what is to be acted on there is nothing (any more)
        return _answer(request, found, Told(f"{error} {error.fix}".strip(), ok=False, status=404))
    at_one_press = len(ids) >= ASKED_FROM and "sure" not in given and request.accepts("text/html")
    if request.method == "GET" or "ask" in given or at_one_press:
        return _ask(request, found, given, ids)
    return _do(request, found, ids)


def _do(request: HttpRequest, found: Action, ids: tuple[str, ...]) -> HttpResponse:
    form = found.form(request.POST, ids=ids, given=request.POST)
    if not form.is_valid():
        if request.accepts("text/html"):
            return _ask(request, found, request.POST, ids, form, status=400)
        return _answer(request, found, Told(_problems(form), ok=False, status=400))
    who = request.user.get_username()
    try:
        with api.audit.acting(who, "dashboard", reason=form.cleaned_data["reason"]) as actor:
            told = found.perform(Order(ids, form.cleaned_data, who, request.POST, partial(may, request.user)))
    except Refused as refused:
        told = Told(str(refused), ok=False, status=refused.status)
    except OutcomeUnknown:
        text = f"{TROUBLE} It is not known whether this was done: look before you do it again."
        told = Told(text, ok=False, status=503)
    except StoreUnavailable as error:
        told = Told(f"{trouble_of(error)[0]} Nothing more was done.", ok=False, status=503)
    except SchedulerError as error:
        text = f"{error} {error.fix}".strip()
        if isinstance(error, AS_TYPED) and found.asks and request.accepts("text/html"):
            form.add_error(None, text)  # what was typed is not lost
            return _ask(request, found, request.POST, ids, form, status=400)
        told = Told(text, ok=False, status=409)
    else:
        log.info("dashboard.action %s by %s: %s %s", found.slug, who, told.text, ids[:20])
        if actor.unrecorded:
            messages.warning(request, "This was not written into the audit log: its database could not be reached.")
    return _answer(request, found, told)


def _answer(request: HttpRequest, found: Action, told: Told) -> HttpResponse:
    """For a form without script a message on the page it came from; for the page's script a sentence."""
    if not request.accepts("text/html"):
        answer = {"ok": told.ok, "message": told.text} | ({"goto": told.goto} if told.goto else {})
        return JsonResponse(answer, status=told.status)
    (messages.success if told.ok else messages.error)(request, told.text)
    response = redirect(told.goto or _back(request, found, request.POST))
    response.status_code = 303
    return response


def _ask(
    request: HttpRequest,
    found: Action,
    given: QueryDict,
    ids: tuple[str, ...],
    form: ActionForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Says exactly what is about to happen, and to what. Changes nothing."""
    back = _back(request, found, given)
    try:
        question = found.question(ids, given)
    except UNREACHABLE as error:
        messages.error(request, f"{trouble_of(error)[0]} Nothing was done.")
        return redirect(back)
    except Refused as refused:
        messages.error(request, str(refused))
        return redirect(back)
    except SchedulerError as error:
        messages.error(request, f"{error} {error.fix}".strip())
        return redirect(back)
    if form is None:
        asked = given.copy()
        for name, value in question.hidden:
            asked[name] = value
        form = found.form(ids=ids, given=asked)
    else:
        form.focus_on_what_is_wrong()
    context = shell(reads.overall()) | {
        "panel": PANELS[found.panel],
        "action": found,
        "question": question,
        "form": form,
        "back": back,
    }
    return render(request, "dashboard/action.html", context, status=status)


def _back(request: HttpRequest, found: Action, given: QueryDict) -> str:
    return own_address(request, given.get("next", "")) or PANELS[found.panel].url


def _problems(form: ActionForm) -> str:
    return " ".join(str(problem) for problems in form.errors.values() for problem in problems)
