"""Who may see the dashboard and who may act. Permissions are Django's own; the names are the contract's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from dashboard.outage import told_without_database
from jobs import api
from jobs.api.reach import Reach

VIEW = "jobs.view_dashboard"
ENQUEUE = "jobs.enqueue"  # new jobs, runs of workflows
OPERATE = "jobs.operate"  # cancel, retry, resubmit, run now
ADMINISTER = "jobs.administer"  # discard

LOOKS = ("GET", "HEAD")
"""Requests that change nothing: what one of them tells is of one moment."""

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def may(user: Any, *permissions: str) -> bool:
    """True when an active user holds all the permissions. What Django says is kept with the user of the request."""
    if not (user.is_authenticated and user.is_active):
        return False
    if not hasattr(user, "_held_permissions"):
        user._held_permissions = {}
    held: dict[str, bool] = user._held_permissions
    for permission in permissions:
        if permission not in held:
            held[permission] = user.has_perm(permission)
    return all(held[permission] for permission in permissions)


def closed_pools(user: Any) -> frozenset[str]:
    """The pools in which this user may not act, whatever the permissions; asked for once a request."""
    if not hasattr(user, "_closed_pools"):
        user._closed_pools = api.pools.closed_to(user) if user.is_authenticated else frozenset()
    return frozenset(user._closed_pools)


def may_reach(user: Any, pools: Reach) -> bool:
    """Whether the user may act in all of these pools; None: in every pool there is."""
    return not api.reach.within(closed_pools(user), pools)


def refuse_closed(user: Any, pools: Reach) -> None:
    """PermissionDenied that names the pools among these in which the user may not act."""
    if names := api.reach.within(closed_pools(user), pools):
        raise PermissionDenied(f"jobs.operate in {', '.join(sorted(names))}")


def requires(*permissions: str, machine: bool = False) -> Callable[[View[P]], View[P]]:
    """The view needs a login and every one of the permissions.

    Without a login pages redirect to the login page; with ``machine`` (answers for scripts of a page) the answer is a
    401 that the script can tell from an expired page. Without a permission the answer is a 403 that names it; without
    the database, which knows both, a 503.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return signed_out(request, machine=machine)
            for permission in permissions:
                if not may(request.user, permission):
                    raise PermissionDenied(permission)
            with api.moment() if request.method in LOOKS else nullcontext():
                return view(request, *args, **kwargs)

        checked.required_permissions = permissions  # type: ignore[attr-defined]  # read by the test that walks all URLs
        return told_without_database(checked)  # type: ignore[arg-type]  # wraps forgets that arguments are positional

    return decorate


def signed_out(request: HttpRequest, *, machine: bool) -> HttpResponse:
    """The answer to somebody who is not logged in (any more)."""
    if machine:
        return JsonResponse(
            {"error": {"code": "signed_out", "message": "You are signed out.", "fix": "Log in again."}}, status=401
        )
    return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("dashboard:overview"))
