"""Controls of pools, workers and the whole system.

Each has a page that says what it will do and asks for what it needs; the same page takes the POST. So each is
confirmed, works without script, and leaves an entry in the audit log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import reads
from dashboard.actions import own_address
from dashboard.panels import BY_SLUG
from dashboard.permissions import OPERATE, requires
from dashboard.shell import shell
from jobs import api
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable

WAIT_SECONDS = 3.0
"""So long a page waits until what workers had taken before a pause has begun or gone back."""

SPANS = {
    "": "until somebody resumes it",
    "15m": "for 15 minutes",
    "1h": "for an hour",
    "8h": "for 8 hours",
    "1d": "for a day",
}
UNITS = {"m": 60, "h": 3_600, "d": 86_400}
MOST_SLOTS = 1_000
LONGEST_REASON = 300


class Refused(Exception):
    """What was typed cannot be carried out; the text says why."""


@dataclass(frozen=True)
class Control:
    """One thing that an operator may do. ``says``: what will happen; ``fields``: what the form asks for."""

    slug: str
    panel: str  # whose page it belongs to
    label: str
    says: str
    perform: Callable[[str, Mapping[str, Any]], str]  # target, form → what was done
    fields: tuple[str, ...] = ()
    final: bool = False  # cannot be taken back

    @property
    def url(self) -> str:
        return reverse("dashboard:control", args=[self.slug])


def _pause_pool(name: str, form: Mapping[str, Any]) -> str:
    api.pools.pause(name, **_pause_options(form))
    return f"Pool {name} is paused."


def _pause_all(_: str, form: Mapping[str, Any]) -> str:
    api.scheduler.pause(**_pause_options(form))
    return "Everything is paused."


def _resume_pool(name: str, _: Mapping[str, Any]) -> str:
    api.pools.resume(name)
    return f"Pool {name} goes on."


def _resume_all(_: str, __: Mapping[str, Any]) -> str:
    api.scheduler.resume()
    return "Everything goes on, save pools and types that were paused by themselves."


def _scale(name: str, form: Mapping[str, Any]) -> str:
    text = str(form.get("slots", "")).strip()
    if not re.fullmatch(r"[0-9]{1,4}", text) or int(text) > MOST_SLOTS:
        raise Refused(f"Slots must be a whole number from 0 to {MOST_SLOTS:,}.")
    api.pools.scale(name, int(text))
    return f"Each worker process of pool {name} now has {text} slots."


def _drain(id: str, _: Mapping[str, Any]) -> str:
    api.workers.drain(id)
    return f"{id} takes nothing new, finishes what runs, and ends."


def _stop(id: str, _: Mapping[str, Any]) -> str:
    api.workers.stop(id)
    return f"{id} stops: what has not ended within its grace goes back."


def _pause_options(form: Mapping[str, Any]) -> dict[str, Any]:
    span = str(form.get("for", ""))
    if span not in SPANS:
        raise Refused("Choose for how long from the list.")
    until = timedelta(seconds=int(span[:-1]) * UNITS[span[-1]]) if span else None
    return {"reason": str(form.get("reason", "")).strip()[:LONGEST_REASON], "until": until, "wait": WAIT_SECONDS}


PAUSE_SAYS = "What runs goes on; new jobs are accepted and wait. The pause survives every restart."

PAUSE_FIELDS = ("reason", "for")

CONTROLS: tuple[Control, ...] = (
    Control("pause-all", "pools", "Pause", f"Nothing more starts, anywhere. {PAUSE_SAYS}", _pause_all, PAUSE_FIELDS),
    Control("resume-all", "pools", "Resume", "Waiting jobs start again, save in pools that are paused.", _resume_all),
    Control(
        "pause-pool", "pools", "Pause", f"Nothing more of this pool starts. {PAUSE_SAYS}", _pause_pool, PAUSE_FIELDS
    ),
    Control("resume-pool", "pools", "Resume", "Waiting jobs of this pool start again.", _resume_pool),
    Control(
        "scale-pool",
        "pools",
        "Scale",
        "Running workers follow within a second. Fewer slots never stop a running job; 0 starts nothing new.",
        _scale,
        ("slots",),
    ),
    Control(
        "drain-worker",
        "workers",
        "Drain",
        "It takes nothing new, finishes what runs however long that takes, and ends.",
        _drain,
        final=True,
    ),
    Control(
        "stop-worker",
        "workers",
        "Stop",
        "It ends as on SIGTERM: what runs may finish within the grace of its host, the rest goes back and runs again.",
        _stop,
        final=True,
    ),
)

BY_CONTROL = {control.slug: control for control in CONTROLS}


@require_http_methods(["GET", "POST"])
@requires(OPERATE)
def control(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Says what the control will do to its target (GET), or does it (POST)."""
    found = BY_CONTROL.get(slug)
    if found is None:
        raise Http404
    given = request.POST if request.method == "POST" else request.GET
    target = given.get("target", "")[:300]
    back = own_address(request, given.get("next", "")) or reverse(f"dashboard:{found.panel}")
    if request.method == "GET":
        return _ask(request, found, target, back)
    try:
        with api.audit.acting(request.user.get_username(), "dashboard") as actor:
            done = found.perform(target, request.POST)
    except Refused as refused:
        messages.error(request, str(refused))
        return _ask(request, found, target, back, status=400)
    except OutcomeUnknown:
        messages.error(request, f"{reads.TROUBLE} It is not known whether this was done: look before you do it again.")
    except StoreUnavailable:
        messages.error(request, f"{reads.TROUBLE} Nothing was done.")
    except SchedulerError as error:
        messages.error(request, f"{error} {error.fix}".strip())
    else:
        messages.success(request, done)
        if actor.unrecorded:
            messages.warning(request, "This was not written into the audit log: its database could not be reached.")
    response = redirect(back)
    response.status_code = 303
    return response


def _ask(request: HttpRequest, found: Control, target: str, back: str, status: int = 200) -> HttpResponse:
    overall = reads.overall()
    pool = next((pool for pool in overall.pools if pool["name"] == target), None)
    context = shell(overall) | {
        "panel": BY_SLUG[found.panel],
        "control": found,
        "target": target,
        "pool": pool,
        "back": back,
        "spans": SPANS,
        "most_slots": MOST_SLOTS,
        "typed": request.POST,
    }
    return render(request, "dashboard/control.html", context, status=status)
