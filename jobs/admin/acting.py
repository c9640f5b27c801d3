"""What the pages share on which people act on things in the admin: each asks first, and does it on POST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.forms import Form
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString

from jobs.admin.mirrored import acting_in_admin
from jobs.api import pools
from jobs.api.reach import Reach, within
from jobs.exceptions import SchedulerError

NAMED = 10
"""Things of a selection that are named before it is acted on."""
REFUSALS = 5
"""Refusals that are told one by one."""


@dataclass(frozen=True)
class Deed:
    """What may be done to each of a selection. ``perform`` is given its name and the answers; it raises SchedulerError.

    ``says``: what will happen, before it does; ``reach``: the pools that it touches.
    """

    title: str
    says: str
    perform: Callable[[str, Form], object]
    reach: Callable[[str], Reach]
    form: type[Form] = Form


class ActingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """Pages that act, and actions on a selection."""

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether this user may steer what runs; changing what is stored asks for Django's own permissions."""
        user: Any = request.user
        return bool(user.has_perm("jobs.operate"))

    def page(self, request: HttpRequest, title: str, row: Any = None) -> dict[str, Any]:
        """What every such page tells its template. ``row``: the one thing that it is about."""
        opts = self.opts
        to_list = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
        return {
            **self.admin_site.each_context(request),
            "opts": opts,
            "object": row,
            "title": title,
            "subtitle": str(row) if row else None,
            "back": reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[row.pk]) if row else to_list,
        }

    def act_on_selected(
        self, request: HttpRequest, names: Sequence[str], action: str, deed: Deed, *, noun: str = "", row: Any = None
    ) -> HttpResponseBase | None:
        """Asks, saying how many and which; once that is confirmed does it to each: one that fails keeps no other.

        ``noun``: what each of them is; else a row of this model. ``row``: the thing on whose page they were selected.
        None: it is done.
        """
        many = number_of(len(names), noun or str(self.opts.verbose_name))
        form = deed.form(request.POST if "post" in request.POST else None)
        if not form.is_valid():
            page = self.page(request, f"{deed.title}: {many}", row) | {
                "form": form,
                "sentences": [deed.says, f"This is about {', '.join(names[:NAMED])}{_and_more(len(names) - NAMED)}."],
                "button": f"{deed.title}: {many}",
                "action": action,
                "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
                "select_across": request.POST.get("select_across", "0"),
            }
            return TemplateResponse(request, "admin/jobs/act.html", page)
        refused = self._each(request, names, deed, form)
        if len(names) > len(refused):
            done = number_of(len(names) - len(refused), noun or str(self.opts.verbose_name))
            messages.success(request, f"{deed.title}: {done}.")
        for error in refused[:REFUSALS]:
            messages.error(request, error)
        if len(refused) > REFUSALS:
            messages.error(request, f"{len(refused) - REFUSALS:,} more were refused.")
        return None

    def _each(self, request: HttpRequest, names: Sequence[str], deed: Deed, form: Form) -> list[str]:
        """Does it to each; what went wrong, in sentences."""
        refused, closed = [], pools.closed_to(request.user)
        for name in names:
            try:
                refuse_kept(closed, deed.reach, name)
                with acting_in_admin(request):
                    deed.perform(name, form)
            except SchedulerError as error:
                refused.append(f"Not done for {name}: {sentence(error)}")
        return refused

    def attempt(
        self, request: HttpRequest, name: str, reach: Callable[[str], Reach], what: Callable[[], str | SafeString]
    ) -> bool:
        """Does it to this thing as this user, and says what came of it or why it was refused; whether it was done."""
        try:
            refuse_kept(pools.closed_to(request.user), reach, name)
            with acting_in_admin(request):
                messages.success(request, what())
        except SchedulerError as error:
            messages.error(request, sentence(error))
            return False
        return True


class PoolKept(SchedulerError):
    """The act touches pools in which only members of some groups may act."""

    code = "pool_kept"


def refuse_kept(closed: frozenset[str], reach: Callable[[str], Reach], name: str) -> None:
    """PoolKept where what is done to this thing touches a pool that is closed to who asks."""
    if closed and (names := within(closed, reach(name))):
        raise PoolKept(
            f"It touches what is kept for others: {', '.join(sorted(names))}.",
            fix="Ask somebody who may act there; the page of the pool names the groups.",
        )


def sentence(error: SchedulerError) -> str:
    """What went wrong, and what helps."""
    return f"{error} {error.fix}".strip()


def number_of(number: int, noun: str) -> str:
    """``1 schedule``, ``1,200 schedules``"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _and_more(number: int) -> str:
    return f" and {number:,} more" if number > 0 else ""
