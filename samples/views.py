"""The webhook receiver, and a page that shows what the sample jobs made and can switch the receiver off and on."""

from __future__ import annotations

import time

from django.contrib.auth.decorators import login_required, permission_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from samples import outputs, webhooks
from samples.receiver import Behaviour, receiver

SHOWN = 8
"""Files listed of each kind."""


# Programs call this: there is no session whose cookie could be abused, and no CSRF token. The signature is the proof.
@csrf_exempt
@require_POST
def receive(request: HttpRequest, behaviour: str = Behaviour.ACCEPT) -> HttpResponse:
    """Takes one webhook: 200 taken, 401 unsigned or too old, 409 replayed, 413 too large, or as ``behaviour`` says."""
    try:
        how = Behaviour(behaviour)
    except ValueError:
        return JsonResponse({"error": f"No such receiver; there are {', '.join(Behaviour)}"}, status=404)
    if len(request.body) > webhooks.LARGEST_BODY:
        return JsonResponse({"error": f"At most {webhooks.LARGEST_BODY:,} bytes are taken"}, status=413)
    reply = receiver.receive(
        request.body,
        delivery=request.headers.get(webhooks.DELIVERY_HEADER, ""),
        signature=request.headers.get(webhooks.SIGNATURE_HEADER, ""),
        behaviour=how,
        now=time.time(),
    )
    response = JsonResponse(reply.content, status=reply.status)
    # A failure on request is no failure of this site: keep Django from logging it as one.
    response._has_been_logged = True  # type: ignore[attr-defined]
    if reply.retry_after is not None:
        response["Retry-After"] = str(reply.retry_after)
    return response


@require_GET
@login_required
@permission_required("jobs.view_dashboard", raise_exception=True)
def home(request: HttpRequest) -> HttpResponse:
    """The newest outputs and the state of the receiver."""
    made = {kind: [path.name for path in outputs.latest(kind, SHOWN)] for kind in outputs.KINDS}
    return render(request, "samples/home.html", {"made": made, "outage": receiver.outage})


@require_POST
@login_required
@permission_required("jobs.operate", raise_exception=True)
def set_receiver(request: HttpRequest) -> HttpResponse:
    """Switches this process's receiver off (``outage=1``) or on, to watch retries, dead letters and resubmission."""
    receiver.outage = request.POST.get("outage") == "1"
    return redirect("samples:home")


@require_GET
@login_required
@permission_required("jobs.view_dashboard", raise_exception=True)
def file(request: HttpRequest, kind: str, name: str) -> FileResponse:
    """One output, as a download: nothing that a job wrote is shown inside this site's pages."""
    # Looked up in the listing, never joined to a path: an address must not reach other folders.
    found = {path.name: path for path in outputs.latest(kind)}.get(name) if kind in outputs.KINDS else None
    if found is None:
        raise Http404("There is no such output (any more)")
    try:
        return FileResponse(found.open("rb"), as_attachment=True, filename=name)
    except FileNotFoundError:
        raise Http404("There is no such output any more") from None
