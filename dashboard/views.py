"""The pages: a shell around one panel, the panel alone for an open page to fetch anew, one job, the search."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from dashboard import reads, stories, timeline
from dashboard.actions.jobs import possible, successor_of
from dashboard.deeds import Deed
from dashboard.figures import figures, version
from dashboard.filters import Filters
from dashboard.links import job_fragment_url, job_url, own_address
from dashboard.overall import UNREACHABLE, Overall, trouble_of
from dashboard.panels import BY_SLUG, Panel
from dashboard.panels.jobs import peek
from dashboard.permissions import ADMINISTER, VIEW, may, requires
from dashboard.shell import shell
from jobs.api import ErrorGroup, JobFilter
from jobs.core.fingerprint import fingerprint_of
from jobs.core.job import Job, iso, moment
from jobs.core.redaction import MASK
from jobs.core.states import JobState
from jobs.exceptions import JobNotFound, OptionInvalid, SchedulerError

THEMES = ("auto", "light", "dark")
ID_MAX_BYTES = 200
DONE_SHOWN = 20
"""The newest things that people did to a job."""

SAME_LOOKED_AT = 200
"""So many of the newest dead jobs are looked at for those that died as this one did."""

LOG_LINES, LOG_OPEN = 200, 25
"""The newest lines of a job's log that its page holds, and those of them that are in sight at once."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    return redirect("dashboard:overview")


@require_GET
def favicon(request: HttpRequest) -> HttpResponse:
    """Where browsers look on pages that name none."""
    return redirect(static("dashboard/favicon.svg"))


@require_GET
@requires(VIEW)
def page(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A panel within the shell. An unreachable store shows as a banner over the last that is known."""
    panel = _panel(request, slug)
    overall = reads.overall()
    query = request.GET.urlencode()
    context = shell(overall) | {
        "panel": panel,
        "template": panel.template,
        "fragment_url": reverse("dashboard:fragment", args=[slug]) + (f"?{query}" if query else ""),
        "refresh_seconds": panel.refresh_seconds,
        "here": _here(request, panel),
    }
    return render(request, "dashboard/page.html", context | read(lambda: panel.context(request, overall), overall))


@require_GET
@requires(VIEW, machine=True)
def fragment(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A panel alone, for a page that is open. 503 while the store is away: the page then keeps and dims what it has."""
    overall = reads.overall()
    if overall.trouble:
        return away(overall.trouble, overall.fix)
    common = shell(overall) | {"panel": BY_SLUG.get(slug)}
    try:
        if slug == "job":
            job = reads.job(request.GET.get("id", "")[:ID_MAX_BYTES])
            return render(request, "dashboard/panels/job.html", common | _job(request, job, overall))
        if slug == "peek":
            job = reads.job(request.GET.get("id", "")[:ID_MAX_BYTES])
            return render(request, "dashboard/peek.html", common | peek(request, job, overall))
        if slug not in BY_SLUG:
            return JsonResponse(
                {"error": {"code": "not_found", "message": "There is no such panel.", "fix": ""}}, status=404
            )
        panel = _panel(request, slug)
        common |= {"here": _here(request, panel)}
        if "updates" in request.GET and hasattr(panel, "updates"):
            return render(request, "dashboard/rows.html", common | panel.updates(request, overall))
        return render(request, panel.template, common | panel.context(request, overall))
    except JobNotFound as error:
        return JsonResponse({"error": {"code": error.code, "message": "This job is gone.", "fix": ""}}, status=404)
    except OptionInvalid as error:
        return JsonResponse({"error": {"code": error.code, "message": str(error), "fix": error.fix}}, status=400)
    except UNREACHABLE as error:
        return away(*trouble_of(error))


@require_GET
@requires(VIEW, machine=True)
def socket(request: HttpRequest) -> HttpResponse:
    """Where pages open their WebSocket. Who comes with anything else is served by what knows no WebSockets: WSGI, or an
    ``asgi`` module without ``dashboard.routing``.
    """
    return HttpResponse(
        "A WebSocket is served here.\n", status=426, content_type="text/plain", headers={"Upgrade": "websocket"}
    )


@require_GET
@requires(VIEW, machine=True)
def snapshot(request: HttpRequest) -> HttpResponseBase:
    """All live figures: for pages whose WebSocket is blocked, and after a gap."""
    overall = reads.overall()
    found = figures(overall)
    return JsonResponse(
        {
            "type": "figures",
            "version": version(found),
            "at": iso(overall.now),
            "trouble": overall.trouble,
            "figures": found,
        }
    )


@require_GET
@requires(VIEW)
def job(request: HttpRequest, job_id: str = "") -> HttpResponseBase:
    """The page of one job. 404 when there is none of this id (any more)."""
    job_id = job_id or request.GET.get("id", "")
    overall = reads.overall()
    context = shell(overall) | {
        "panel": BY_SLUG["jobs"],
        "template": "dashboard/panels/job.html",
        "fragment_url": job_fragment_url(job_id),
        "refresh_seconds": 1.0,
        "job_id": job_id,
    }
    try:
        return render(
            request, "dashboard/page.html", context | read(lambda: _job_page(request, job_id, overall), overall)
        )
    except JobNotFound:
        return render(request, "dashboard/job_gone.html", context, status=404)


@require_GET
@requires(VIEW)
def raw(request: HttpRequest) -> HttpResponseBase:
    """A job's payload or result as a JSON file, for those too long to be shown."""
    part = "result" if request.GET.get("part") == "result" else "payload"
    try:
        found = reads.job(request.GET.get("id", "")[:ID_MAX_BYTES])
    except JobNotFound:
        return HttpResponse("This job is gone.", status=404, content_type="text/plain; charset=utf-8")
    except UNREACHABLE as error:
        return HttpResponse(trouble_of(error)[0], status=503, content_type="text/plain; charset=utf-8")
    body = json.dumps(getattr(found, part), indent=2, ensure_ascii=False).encode("utf-8", "replace")
    response = HttpResponse(body, content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{part}.json"'
    return response


@require_GET
@requires(VIEW)
def find(request: HttpRequest) -> HttpResponseBase:
    """The search box: a whole id opens the job, anything else becomes filters of the list."""
    text = request.GET.get("q", "").strip()[:400]
    if text and len(text.encode("utf-8", "replace")) <= ID_MAX_BYTES and text.isprintable():
        try:
            return redirect(job_url(reads.job(text).id))
        except SchedulerError:
            pass
    query = Filters.from_words(text).query
    return redirect(reverse("dashboard:jobs") + (f"?{query}" if query else ""))


@require_POST
@requires()
def theme(request: HttpRequest) -> HttpResponseBase:
    """Keeps the reader's choice of light or dark in a cookie, so that the server renders it and nothing flashes."""
    chosen = request.POST.get("theme", "")
    back = own_address(request, request.POST.get("next", "")) or reverse("dashboard:overview")
    response: HttpResponse = redirect(back) if request.accepts("text/html") else HttpResponse(status=204)
    if chosen in THEMES:
        response.set_cookie(
            "theme",
            chosen,
            max_age=timedelta(days=365),
            httponly=True,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )
    return response


def _panel(request: HttpRequest, slug: str) -> Panel:
    """The panel, if this user may open it."""
    panel = BY_SLUG[slug]
    if not may(request.user, panel.permission):
        raise PermissionDenied(panel.permission)
    return panel


def read(context: Callable[[], dict[str, Any]], overall: Overall) -> dict[str, Any]:
    """What a panel shows; when the store is away a panel that cannot do without it is replaced by a sentence."""
    try:
        return context()
    except OptionInvalid as error:
        return {"template": "dashboard/unread.html", "trouble": str(error), "fix": error.fix}
    except UNREACHABLE as error:
        trouble, fix = trouble_of(error)
        return shell(reads.overall()) | {"template": "dashboard/unread.html", "trouble": trouble, "fix": fix}


def _here(request: HttpRequest, panel: Panel) -> str:
    """The address of the page, also for a fragment of it: where to come back to."""
    query = request.GET.copy()
    for word in ("updates", "rows", "shown"):
        query.pop(word, None)
    return panel.url + (f"?{query.urlencode()}" if query else "")


def away(trouble: str, fix: str) -> JsonResponse:
    return JsonResponse({"error": {"code": "store_unavailable", "message": trouble, "fix": fix}}, status=503)


def _job_page(request: HttpRequest, job_id: str, overall: Overall) -> dict[str, Any]:
    """The same within the shell, whose rail marks the list that such a job is in."""
    job = reads.job(job_id[: ID_MAX_BYTES + 1])
    return {"panel": BY_SLUG["dead" if job.state == JobState.DEAD else "jobs"], **_job(request, job, overall)}


def _job(request: HttpRequest, job: Job, overall: Overall) -> dict[str, Any]:
    finding, rest = stories.what_happened(job, overall)
    why = reads.why(job)
    if why is not None and why.code not in stories.TOLD_ANYWAY:
        finding = why.message
    found = timeline.parts(job, overall.now)
    done_to = reads.done_to(job.id, DONE_SHOWN)
    return {
        "job": job,
        "here": job_url(job.id),
        "link": request.build_absolute_uri(job_url(job.id)),
        "finding": finding,
        "rest": rest,
        "reason": stories.reason(job, overall),
        "actions": possible(job, request.user),
        "successor": successor_of(job),
        "parts": found,
        "busy": timeline.busy_words(found),
        "changes": timeline.changes(job, done_to or ()),
        "attempts": list(reversed(job.attempts)),
        "same_error": timeline.same_error(job),
        "progress": stories.progress_of(job, overall.now),
        "heard_at": _heard_at(job),
        **_log(job),
        "command": _command(job),
        "done_to": done_to and [Deed(entry) for entry in done_to],
        "same_death": _same_death(job, overall),
        "reveals": may(request.user, ADMINISTER) and MASK in repr((job.payload, job.result, job.meta, job.error)),
        "fragment_url": job_fragment_url(job.id),
    }


def _heard_at(job: Job) -> datetime | None:
    """When the worker that runs it was last heard of; None where none does, or none is known."""
    if not job.is_running:
        return None
    return next((moment(worker.last_seen_ms) for worker in reads.workers() if worker.id == job.worker), None)


def _same_death(job: Job, overall: Overall) -> ErrorGroup | None:
    """The group of dead jobs that it belongs to, among the newest."""
    if job.state != JobState.DEAD:
        return None
    mark = fingerprint_of(job.error)
    newest = reads.error_groups(JobFilter(states=(JobState.DEAD,)), SAME_LOOKED_AT).groups
    return next((group for group in newest if group.fingerprint == mark), None)


def _log(job: Job) -> dict[str, Any]:
    page = reads.job_log(job.id)
    newest = page.lines[-LOG_LINES:]
    return {
        "log": newest[-LOG_OPEN:],
        "log_older": newest[:-LOG_OPEN],
        "log_left_out": len(page.lines) - len(newest),
        "log_gone": sorted(page.gone.items()),
    }


def _command(job: Job) -> str:
    """The same on the command line: the likeliest thing to do with the job in this state."""
    verb = {"dead": "dlq resubmit", "scheduled": "jobs run-now", "retry_wait": "jobs retry"}.get(
        str(job.state), "jobs show"
    )
    return f"python manage.py {verb} {shlex.quote(job.id)}"
