"""Acting on jobs. Each action is a small resource: it takes a POST, checks the permission, calls one verb of the engine
and says what came of it. Two people pressing at once have one effect: the engine decides, the second is told.
"""

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
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import reads
from dashboard.filters import Filters
from dashboard.formats import count, plural, read_moment
from dashboard.permissions import VIEW, may, requires
from dashboard.shell import shell
from dashboard.verbs import BY_VERB, Action, Outcomes
from jobs import api
from jobs.api import JobFilter
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""At most so many jobs are acted on by id in one request."""

TYPED_ABOVE = 1000
"""A selection larger than this is confirmed by typing its number."""

SLICE_PAGE = 200
SLICE_SECONDS = 2.0
"""A request that works on all that match stops after this time and says how many are left; the page goes on."""


@require_POST
@requires(VIEW)
def act(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Acts on the jobs named by ``id`` (repeatable), or on all that match the posted filter as it was at ``until``."""
    action = _action(request, verb)
    with api.audit.acting(request.user.get_username(), "dashboard"):
        return _act(request, action)


def _act(request: HttpRequest, action: Action) -> HttpResponse:
    try:
        if "until" in request.POST:
            return _act_on_matching(request, action)
        job_ids = list(dict.fromkeys(request.POST.getlist("id")))[:AT_ONCE]
        if not job_ids:
            return _answer(request, ok=False, text=f"Nothing was selected to {action.label.lower()}.", status=400)
        outcomes = action.perform(job_ids)
    except OutcomeUnknown:
        text = f"{reads.TROUBLE} It is not known whether this was done: look before you do it again."
        return _answer(request, ok=False, text=text, status=503)
    except StoreUnavailable:
        return _answer(request, ok=False, text=f"{reads.TROUBLE} Nothing more was done.", status=503)
    except SchedulerError as error:
        return _answer(request, ok=False, text=f"{error} {error.fix}".strip(), status=409)
    _log(request, action, sum(error is None for error in outcomes.values()), jobs=job_ids[:20])
    return _told(request, action, outcomes)


def _told(request: HttpRequest, action: Action, outcomes: Outcomes) -> HttpResponse:
    refused = {job_id: error for job_id, error in outcomes.items() if error is not None}
    done = len(outcomes) - len(refused)
    if len(outcomes) == 1 and refused:
        error = next(iter(refused.values()))
        status = 404 if error.code == "job_not_found" else 409
        return _answer(request, ok=False, text=f"Not {action.done}: {error} {error.fix}".strip(), status=status)
    text = f"{plural(done, 'job')} {action.done}." if len(outcomes) > 1 else f"The job was {action.done}."
    if action.verb == "cancel" and done == 1 and len(outcomes) == 1:
        text = "The job is cancelled, or will be as soon as its handler stops."
    if refused:
        causes = sorted({str(error) for error in refused.values()})
        text += f" {count(len(refused))} not: {'; '.join(causes[:3])}"
    return _answer(request, ok=not refused, text=text, gone=action.verb == "discard")


def _act_on_matching(request: HttpRequest, action: Action) -> HttpResponse:
    """One slice of the work on a frozen selection; the answer says where the next slice goes on."""
    filters = Filters.read(request.POST)
    until = read_moment(request.POST.get("until", "")[:40])
    if not action.bulk or until is None or not filters.states:
        return _answer(
            request, ok=False, text="This selection cannot be used. Open the list and choose again.", status=400
        )
    expected = _number(request.POST.get("expected", ""))
    if expected > TYPED_ABOVE and _number(request.POST.get("typed", "").replace(",", "")) != expected:
        return _answer(request, ok=False, text=f"Nothing was done: type {expected} to confirm.", status=400)
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


def _slice(action: Action, selection: JobFilter, cursor: str) -> Slice:
    """Walks the list from the cursor on, newest first, acting page by page until the time is up.

    What arrives meanwhile stands before the cursor, and what dies again dies after ``until``: neither is met.
    """
    _refuse_other_states(action, selection)
    done = failed = 0
    stop = time.monotonic() + SLICE_SECONDS
    while True:
        page = api.list_jobs(selection, cursor=cursor or None, limit=SLICE_PAGE)
        outcomes = action.perform([job.id for job in page.items]) if page.items else {}
        failed += sum(error is not None for error in outcomes.values())
        done += sum(error is None for error in outcomes.values())
        cursor = page.next_cursor or ""
        if not cursor or time.monotonic() > stop:
            return Slice(done, failed, cursor)


def _refuse_other_states(action: Action, selection: JobFilter) -> None:
    wrong = [str(state) for state in selection.states if state not in action.states]
    if wrong:
        raise WrongState(f"Jobs that are {', '.join(wrong)} cannot be {action.done}.")


@require_http_methods(["GET", "POST"])
@requires(VIEW)
def confirm(request: HttpRequest, verb: str) -> HttpResponseBase:
    """Says exactly what is about to happen, to how many jobs. Changes nothing; a POST only carries a long selection."""
    action = _action(request, verb)
    given = request.POST if request.method == "POST" else request.GET
    job_ids = list(dict.fromkeys(given.getlist("id")))[:AT_ONCE]
    back = own_address(request, given.get("next", "")) or reverse("dashboard:dead")
    overall = reads.overall()
    context = shell(overall) | {
        "action": action,
        "ids": job_ids,
        "back": back,
        "typed_above": TYPED_ABOVE,
    }
    try:
        if job_ids:
            jobs = [job for job in reads.jobs_by_id(job_ids) if job is not None and job.state in action.states]
            context |= {"jobs": jobs[:20], "ids": [job.id for job in jobs], "number": len(jobs)}
        elif action.bulk:
            filters = Filters.read(given)
            if not filters.states:
                raise Http404
            until = overall.now
            number = api.count_matching(filters.selection(until, until))
            context |= {"filters": filters, "until": until, "number": number}
        else:
            raise Http404
    except reads.UNREACHABLE:
        messages.error(request, f"{reads.TROUBLE} Nothing was done.")
        return redirect(back)
    return render(request, "dashboard/confirm.html", context)


def _action(request: HttpRequest, verb: str) -> Action:
    """The action of this name, if this user may do it."""
    action = BY_VERB.get(verb)
    if action is None:
        raise Http404
    if not may(request.user, action.permission):
        raise PermissionDenied(action.permission)
    return action


def _answer(request: HttpRequest, *, ok: bool, text: str, status: int = 200, gone: bool = False) -> HttpResponse:
    """For a form without script a message on the page it came from; for the page's script a sentence."""
    if not request.accepts("text/html"):
        return JsonResponse({"ok": ok, "message": text}, status=status)
    (messages.success if ok else messages.error)(request, text)
    target = own_address(request, request.POST.get("next", ""))
    if gone or not target:
        target = (
            own_address(request, request.POST.get("after", ""))
            or (target if not gone else "")
            or reverse("dashboard:jobs")
        )
    response = redirect(target)
    response.status_code = 303
    return response


def own_address(request: HttpRequest, url: str) -> str:
    """The address when it is one of ours, else nothing."""
    if (
        url.startswith("/")
        and url.isprintable()
        and url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    ):
        return url
    return ""


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0


def _log(request: HttpRequest, action: Action, done: int, **facts: object) -> None:
    """One line for each thing that somebody did: who, what, to how many."""
    log.info("dashboard.action %s by %s: %d jobs %s", action.verb, request.user.get_username(), done, facts)
