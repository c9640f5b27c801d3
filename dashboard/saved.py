"""Saved views: a filter under a name, for oneself or for all. Kept is what stands in the address, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import DatabaseError, transaction
from django.db.models import Case, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.filters import Filters
from dashboard.formats import read_number
from dashboard.links import own_address
from dashboard.models import SavedView
from dashboard.permissions import ADMINISTER, OPERATE, VIEW, may, requires
from jobs import api

PAGES = ("jobs", "dead")
NAME_MAX = 60
MOST = 50
"""Views of one person."""

SHARED_SHOWN = 150
"""Of others', at least so many are listed; by name."""

DATABASE = "The database that keeps views cannot be used just now."


@dataclass(frozen=True)
class View:
    """A saved view as a reader sees it."""

    id: int
    name: str
    url: str
    by: str
    """Whose it is, where it is not the reader's own."""
    is_shared: bool
    is_here: bool
    may_forget: bool


def views(request: HttpRequest, page: str, filters: Filters) -> list[View]:
    """The reader's own and the shared ones, for beside the chips: one query. None while the database is away."""
    user: Any = request.user
    try:
        rows = sorted(_visible(user, page)[: MOST + SHARED_SHOWN], key=lambda row: (row.name, row.pk))
    except DatabaseError:
        return []
    return [
        View(
            id=row.pk,
            name=row.name,
            url=reverse(f"dashboard:{page}") + (f"?{row.query}" if row.query else ""),
            by="" if row.owner_id == user.pk else row.owner.get_username(),
            is_shared=row.is_shared,
            is_here=row.query == filters.query,
            may_forget=row.owner_id == user.pk or (row.is_shared and may(user, ADMINISTER)),
        )
        for row in rows
    ]


def _visible(user: Any, page: str) -> QuerySet[SavedView]:
    """The reader's own first: however many others share, what is cut off are theirs."""
    theirs = Case(When(owner=user, then=Value(0)), default=Value(1))
    seen = SavedView.objects.filter(Q(owner=user) | Q(is_shared=True), page=page).select_related("owner")
    return seen.order_by(theirs, "name", "id")


@require_POST
@requires(VIEW)
def save(request: HttpRequest) -> HttpResponseBase:
    """Keeps the filter of a list under a name; an own view of that name becomes this one. Sharing needs to operate."""
    given = request.POST
    page = given.get("page", "") if given.get("page") in PAGES else "jobs"
    name = " ".join(given.get("name", "").split())[:NAME_MAX]
    shared = "shared" in given and may(request.user, OPERATE)
    query = Filters.read(given).query
    if not name or not name.isprintable():
        messages.error(request, "Nothing was saved: give the view a name.")
    elif len(query) > 2000:
        messages.error(request, "Nothing was saved: the filter is too long.")
    else:
        _keep(request, page, name, query, shared=shared)
    return redirect(reverse(f"dashboard:{page}") + (f"?{query}" if query else ""))


def _keep(request: HttpRequest, page: str, name: str, query: str, *, shared: bool) -> None:
    user: Any = request.user
    try:
        with transaction.atomic():
            own = SavedView.objects.filter(owner=user)
            if own.count() >= MOST and not own.filter(page=page, name=name).exists():
                messages.error(request, f"Nothing was saved: you have {MOST} views. Forget one first.")
                return
            SavedView.objects.update_or_create(
                owner=user, page=page, name=name, defaults={"query": query, "is_shared": shared}
            )
    except DatabaseError:
        messages.error(request, f"Nothing was saved. {DATABASE}")
        return
    if shared:
        with api.audit.acting(user.get_username(), "dashboard"):
            api.audit.record("view.share", name, after={"page": page, "filter": query})
    messages.success(request, f"Saved as “{name}”{', for everybody' if shared else ''}.")


@require_POST
@requires(VIEW)
def forget(request: HttpRequest) -> HttpResponseBase:
    """Forgets an own view; whoever administers may forget a shared one."""
    user: Any = request.user
    wanted = SavedView.objects.filter(pk=read_number(request.POST.get("view", "")))
    try:
        allowed = (
            wanted.filter(Q(owner=user) | Q(is_shared=True)) if may(user, ADMINISTER) else wanted.filter(owner=user)
        )
        gone, _ = allowed.delete()
        words = "The view is forgotten." if gone else "There is no such view of yours (any more)."
    except DatabaseError:
        gone, words = 0, DATABASE
    (messages.success if gone else messages.error)(request, words)
    return redirect(own_address(request, request.POST.get("next", "")) or reverse("dashboard:jobs"))
