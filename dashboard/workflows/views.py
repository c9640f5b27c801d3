"""The page of one run, and its panel alone for a page that is open."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard import reads
from dashboard.links import run_fragment_url
from dashboard.overall import UNREACHABLE, trouble_of
from dashboard.panels import BY_SLUG
from dashboard.permissions import VIEW, requires
from dashboard.shell import shell
from dashboard.views import ID_MAX_BYTES, away, read
from dashboard.workflows.page import run_page
from jobs.exceptions import RunNotFound

TEMPLATE = "dashboard/panels/run.html"


@require_GET
@requires(VIEW)
def run(request: HttpRequest, run_id: str) -> HttpResponseBase:
    """The page of one run. 404 when there is none of this id (any more)."""
    overall = reads.overall()
    context = shell(overall) | {
        "panel": BY_SLUG["workflows"],
        "template": TEMPLATE,
        "fragment_url": run_fragment_url(run_id, request.GET.urlencode()),
        "refresh_seconds": 1.0,
        "run_id": run_id,
    }
    try:
        return render(
            request, "dashboard/run_page.html", context | read(lambda: run_page(request, run_id, overall), overall)
        )
    except RunNotFound:
        return render(request, "dashboard/run_gone.html", context, status=404)


@require_GET
@requires(VIEW, machine=True)
def fragment(request: HttpRequest) -> HttpResponseBase:
    """The panel of a run alone. 503 while the store is away: the page then keeps and dims what it has."""
    overall = reads.overall()
    if overall.trouble:
        return away(overall.trouble, overall.fix)
    common = shell(overall) | {"panel": BY_SLUG["workflows"]}
    try:
        found = run_page(request, request.GET.get("id", "")[: ID_MAX_BYTES + 1], overall)
    except RunNotFound as error:
        return JsonResponse({"error": {"code": error.code, "message": "This run is gone.", "fix": ""}}, status=404)
    except UNREACHABLE as error:
        return away(*trouble_of(error))
    return render(request, TEMPLATE, common | found)
