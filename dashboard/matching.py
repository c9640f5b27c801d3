"""Acting on all jobs that match a filter, as it was at one moment: in slices of a few seconds, page by page."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from dashboard import reads
from dashboard.actions.jobs import ACTIONS, JobAction
from dashboard.filters import Filters
from dashboard.formats import count, plural, read_moment
from dashboard.links import own_address
from dashboard.permissions import VIEW, may, refuse_closed, requires
from dashboard.shell import shell
from jobs import api
from jobs.api import JobFilter
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState

log = logging.getLogger(__name__)

TYPED_ABOVE = 1000
"""A selection larger than this is confirmed by typing its number."""

SLICE_PAGE = 200
SLICE_SECONDS = 2.0
"""A request that works on all that match stops after this time and says how many are left; the page goes on."""

BULK = {action.verb: action for action in ACTIONS if action.bulk}


@require_POST
@requires(VIEW)
def act(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Acts on all that match the posted filter as it was at ``until``."""
    action = _action(request, verb)
    try:
        with api.audit.acting(request.user.get_username(), "dashboard"):
            return _act(request, action)
    except OutcomeUnknown:
        text = f"{reads.TROUBLE} It is not known whether this was done: look before you do it again."
        return _answer(request, ok=False, text=text, status=503)
    except StoreUnavailable:
        return _answer(request, ok=False, text=f"{reads.TROUBLE} Nothing more was done.", status=503)
    except SchedulerError as error:
        return _answer(request, ok=False, text=f"{error} {error.fix}".strip(), status=409)


def _act(request: HttpRequest, action: JobAction) -> HttpResponse:
    """One slice of the work on a frozen selection; the answer says where the next slice goes on."""
    filters = Filters.read(request.POST)
    until = read_moment(request.POST.get("until", "")[:40])
    if until is None or not filters.states:
        return _answer(
            request, ok=False, text="This selection cannot be used. Open the list and choose again.", status=400
        )
    expected = _number(request.POST.get("expected", ""))
    if expected > TYPED_ABOVE and _number(request.POST.get("typed", "").replace(",", "")) != expected:
        return _answer(request, ok=False, text=f"Nothing was done: type {expected} to confirm.", status=400)
    refuse_closed(request.user, frozenset({filters.pool}) if filters.pool else None)
    part = _slice(action, filters.selection(until, until), filters.cursor)
    done = _number(request.POST.get("so_far", "")) + part.done
    _log(request, action, part.done, filter=filters.words, until=until.isoformat())
    text = f"{plural(done, 'job')} {action.done}." + (f" {count(part.failed)} could not be." if part.failed else "")
    if not request.accepts("text/html"):
        answer = {"done": part.done, "failed": part.failed, "cursor": part.cursor, "message": text}
        return JsonResponse(answer)
    if part.cursor:
        left = max(0, expected - done)
        going_on = {"action": action, "filters": filters, "until": until, "expected": expected, "left": left}
        context = shell(reads.overall()) | going_on | {"done": done, "cursor": part.cursor}
        return render(request, "dashboard/continue.html", context)
    return _answer(request, ok=not part.failed, text=text)


@dataclass(frozen=True)
class Slice:
    """What one slice did. ``cursor``: where the next one goes on; empty when all is done."""

    done: int
    failed: int
    cursor: str


def _slice(action: JobAction, selection: JobFilter, cursor: str) -> Slice:
    """Walks the list from the cursor on, newest first, acting page by page until the time is up.

    What arrives meanwhile stands before the cursor, and what dies again dies after ``until``: neither is met.
    """
    _refuse_other_states(action, selection)
    done = failed = 0
    stop = time.monotonic() + SLICE_SECONDS
    while True:
        page = api.list_jobs(selection, cursor=cursor or None, limit=SLICE_PAGE)
        outcomes = action.each([job.id for job in page.items]) if page.items else {}
        failed += sum(error is not None for error in outcomes.values())
        done += sum(error is None for error in outcomes.values())
        cursor = page.next_cursor or ""
        if not cursor or time.monotonic() > stop:
            return Slice(done, failed, cursor)


def _refuse_other_states(action: JobAction, selection: JobFilter) -> None:
    wrong = [str(state) for state in selection.states if state not in action.states]
    if wrong:
        raise WrongState(f"Jobs that are {', '.join(wrong)} cannot be {action.done}.")


@require_GET
@requires(VIEW)
def confirm(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Says exactly what is about to happen, to how many jobs. Changes nothing."""
    action = _action(request, verb)
    back = own_address(request, request.GET.get("next", "")) or reverse("dashboard:dead")
    overall = reads.overall()
    filters = Filters.read(request.GET)
    if not filters.states:
        raise Http404
    refuse_closed(request.user, frozenset({filters.pool}) if filters.pool else None)
    until = overall.now
    try:
        number = api.count_matching(filters.selection(until, until))
    except reads.UNREACHABLE:
        messages.error(request, f"{reads.TROUBLE} Nothing was done.")
        return redirect(back)
    context = {"action": action, "back": back, "typed_above": TYPED_ABOVE}
    context |= {"filters": filters, "until": until, "number": number}
    return render(request, "dashboard/confirm.html", shell(overall) | context)


def _action(request: HttpRequest, verb: str) -> JobAction:
    """The action of this name, if this user may do it."""
    action = BULK.get(verb)
    if action is None:
        raise Http404
    if not may(request.user, action.permission):
        raise PermissionDenied(action.permission)
    return action


def _answer(request: HttpRequest, *, ok: bool, text: str, status: int = 200) -> HttpResponse:
    """For a form without script a message on the page it came from; for the page's script a sentence."""
    if not request.accepts("text/html"):
        return JsonResponse({"ok": ok, "message": text}, status=status)
    (messages.success if ok else messages.error)(request, text)
    response = redirect(own_address(request, request.POST.get("next", "")) or reverse("dashboard:jobs"))
    response.status_code = 303
    return response


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0


def _log(request: HttpRequest, action: JobAction, done: int, **facts: object) -> None:
    """One line for each thing that somebody did: who, what, to how many."""
    log.info("dashboard.action %s by %s: %d jobs %s", action.verb, request.user.get_username(), done, facts)
