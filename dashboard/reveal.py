"""One job with nothing masked, for those who may administer: asked for by name, and on record."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from dashboard import reads
from dashboard.overall import UNREACHABLE, trouble_of
from dashboard.panels import BY_SLUG
from dashboard.permissions import ADMINISTER, VIEW, requires
from dashboard.shell import shell
from jobs import api
from jobs.exceptions import JobNotFound

REASON_MAX = 200
ID_MAX = 300


@require_POST
@never_cache
@requires(VIEW, ADMINISTER)
def reveal(request: HttpRequest) -> HttpResponseBase:
    """A page of its own that nothing refreshes: what it shows is shown to one person, once. A POST, since it writes the
    audit log, and so that neither histories nor caches hold it.
    """
    job_id = request.POST.get("id", "")[:ID_MAX]
    overall = reads.overall()
    context: dict[str, Any] = shell(overall) | {"panel": BY_SLUG["jobs"], "job_id": job_id}
    try:
        with api.audit.acting(request.user.get_username(), "dashboard") as actor:
            job, log = reads.revealed(job_id, reason=request.POST.get("reason", "").strip()[:REASON_MAX])
    except JobNotFound:
        return render(request, "dashboard/job_gone.html", context, status=404)
    except UNREACHABLE as error:
        trouble, fix = trouble_of(error)
        away = {"template": "dashboard/unread.html", "trouble": trouble, "fix": fix}
        return render(request, "dashboard/page.html", context | away, status=503)
    return render(
        request, "dashboard/reveal.html", context | {"job": job, "log": log.lines, "unrecorded": actor.unrecorded}
    )
