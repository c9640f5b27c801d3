"""Pausing and resuming from a list in the admin: asked for a reason, permitted, written down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from jobs.admin.acting import refuse_kept
from jobs.api import budget, pools
from jobs.api.reach import Reach
from jobs.exceptions import SchedulerError

WAIT_SECONDS = 3.0
"""So long a page waits until what workers had taken before a pause has begun or gone back."""

PATIENCE_SECONDS = 5.0

HOURS = (("", "until somebody resumes it"), ("1", "for an hour"), ("8", "for 8 hours"), ("24", "for a day"))


REASON_MAX = 200


class ReasonForm(forms.Form):
    """Why somebody pauses."""

    reason = forms.CharField(
        max_length=REASON_MAX, required=False, label="Why", help_text="Shown wherever the pause is."
    )


class PauseForm(ReasonForm):
    """Why, and for how long."""

    hours = forms.ChoiceField(choices=HOURS, required=False, label="How long")

    @property
    def span(self) -> timedelta | None:
        hours = self.cleaned_data["hours"]
        return timedelta(hours=int(hours)) if hours else None


class PausingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """Adds two actions over rows with a name. A subclass says how one is paused and resumed."""

    actions: Sequence[str] = ("pause", "resume")

    def pause_one(self, name: str, **options: Any) -> object:
        """Pauses it. Raises SchedulerError."""
        raise NotImplementedError

    def resume_one(self, name: str) -> object:
        """Resumes it. Raises SchedulerError."""
        raise NotImplementedError

    def reach_of(self, name: str) -> Reach:
        """The pools in which that is felt."""
        raise NotImplementedError

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.operate")

    @admin.action(description="Pause selected %(verbose_name_plural)s", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Any]) -> TemplateResponse | None:
        form = PauseForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._ask(request, queryset, "Pause", form)
        options = {"reason": form.cleaned_data["reason"], "until": form.span, "wait": WAIT_SECONDS}
        self._each(request, queryset, lambda name: self.pause_one(name, **options), "paused")
        return None

    @admin.action(description="Resume selected %(verbose_name_plural)s", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Any]) -> TemplateResponse | None:
        if "confirmed" not in request.POST:
            return self._ask(request, queryset, "Resume", None)
        self._each(request, queryset, self.resume_one, "resumed")
        return None

    def _each(self, request: HttpRequest, queryset: QuerySet[Any], act: Any, done: str) -> None:
        names: list[str] = []
        closed = pools.closed_to(request.user)
        for name in queryset.values_list("name", flat=True):
            try:
                refuse_kept(closed, self.reach_of, name)
                with budget(PATIENCE_SECONDS):
                    act(name)
            except SchedulerError as error:
                messages.error(request, f"{name} was not {done}: {error} {error.fix}".strip())
            else:
                names.append(name)
        if names:
            messages.success(request, f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {done}.")

    def _ask(
        self, request: HttpRequest, queryset: QuerySet[Any], verb: str, form: PauseForm | None
    ) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"{verb}?",
            "opts": self.model._meta,
            "verb": verb,
            "rows": queryset,
            "form": form,
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/jobs/pausing.html", context)
