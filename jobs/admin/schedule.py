"""Schedules in the admin: a form that shows what it would do, a list that shows what was done, and what people may do.

The row is the definition; every change goes through ``jobs.api.schedules`` or the row's own ``save``, which write the
history. Rows that the code owns are shown and steered here, not edited.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin.schedule_form import TIMING, Known, ScheduleForm, shown, suggestions
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

WHY_READ_ONLY = (
    "This schedule is declared in the code, which would undo what is changed here: change it there. "
    "It can be started, paused and resumed."
)


@admin.register(Schedule)
class ScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    form = ScheduleForm
    list_display = ("name", "job_type", "when", "state")
    list_filter = ("kind", "owner", "enabled")
    search_fields = ("name", "job_type", "cron")
    list_per_page = 50
    fieldsets = (
        (None, {"fields": ("name", "enabled", "job_type", "payload")}),
        ("When", {"fields": ("kind", "cron", "interval_seconds", "run_at", "timezone", "jitter_seconds")}),
        ("From when, until when, how often", {"fields": ("starts_at", "ends_at", "max_firings")}),
        (
            "When something is in the way",
            {"fields": ("missed", "missed_limit", "grace_seconds", "overlap")},
        ),
        (
            "Options of its jobs",
            {"fields": ("pool", "priority", "max_retries", "timeout"), "classes": ["collapse"]},
        ),
    )

    # What may be done, and by whom ------------------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _is_of_code(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        # The row of a schedule that the code still declares would be back after the next start.
        return super().has_delete_permission(request, obj) and not _is_of_code(obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> tuple[str, ...]:
        # Jobs and records refer to the name: under a new one it would be another schedule.
        return ("name",) if obj else ()

    # The list ---------------------------------------------------------------------------------------------------------

    @admin.display(description="when", ordering="cron")
    def when(self, schedule: Schedule) -> SafeString:
        try:
            words = schedule.rule().describe()
        except SchedulerError as error:
            words = str(error)
        return format_html(
            '{}<div class="schedule-quiet"><code>{}</code> {}</div>', words, schedule.cron, schedule.timezone
        )

    @admin.display(description="state")
    def state(self, schedule: Schedule) -> str:
        if schedule.error:
            return f"cannot fire: {schedule.error}"
        if schedule.is_paused:
            return f"paused by {schedule.paused_by}: {schedule.paused_reason}".removesuffix(": ")
        return "on" if schedule.enabled else "disabled"

    # The form and its preview -----------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        obj.changed_by = request.user.get_username()
        super().save_model(request, obj, form, change)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A copy starts with the fields of the schedule named in the address, and without a name."""
        initial = dict(super().get_changeform_initial_data(request))
        copied = initial.pop("copy_of", None)
        if copied is None:
            return initial
        original = self._found(request, str(copied))
        return {**original.fields, "name": "", **initial}

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Schedule | None = None,
    ) -> HttpResponse:
        form = context["adminform"].form
        editable = add or self.has_change_permission(request, obj)
        if "payload" in form.fields:
            form.fields["payload"].help_text = format_html(
                '{} <code class="schedule-signature" id="payload-signature">{}</code>',
                form.fields["payload"].help_text,
                form.signature,
            )
        context |= {
            "shown": shown(form, self._known(obj), request.POST.get("viewer_zone", "")),
            "preview_url": self._preview_url(obj) if editable else "",
            "timing_fields": " ".join(TIMING),
            "suggestions": suggestions() if editable else {},
            "tools": self._tools(request, obj) if obj else (),
            "why_readonly": WHY_READ_ONLY if _is_of_code(obj) else "",
            "trouble": [obj.error] if obj and obj.error else (),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def preview_view(self, request: HttpRequest) -> HttpResponseBase:
        """What the form would do as it stands, for its script: GET, nothing is saved."""
        obj = self._found(request, request.GET["of"]) if request.GET.get("of") else None
        if not (self.has_change_permission(request, obj) if obj else self.has_add_permission(request)):
            raise PermissionDenied
        form = cast("type[ScheduleForm]", self.get_form(request, obj, change=obj is not None))(
            request.GET, instance=obj
        )
        found = shown(form, self._known(obj), request.GET.get("viewer_zone", ""))
        return JsonResponse(
            {
                "html": render_to_string("admin/jobs/schedule/preview.html", {"shown": found}),
                "said": found.said,
                "errors": form.timing_errors(),
                "signature": form.signature,
            }
        )

    def _preview_url(self, obj: Schedule | None) -> str:
        query = f"?of={obj.pk}" if obj else ""
        return reverse("admin:jobs_schedule_preview") + query

    def _known(self, obj: Schedule | None) -> Known:
        if obj is None:
            return Known()
        return Known(created_at=obj.created_at, fired=obj.firings)

    def _found(self, request: HttpRequest, pk: str) -> Schedule:
        """The schedule, if this user may see it. Raises Http404, PermissionDenied."""
        schedule: Schedule | None = self.get_object(request, pk)
        if schedule is None:
            raise Http404
        if not self.has_view_or_change_permission(request, schedule):
            raise PermissionDenied
        return schedule

    def _tools(self, request: HttpRequest, obj: Schedule) -> Iterable[dict[str, str]]:
        if self.has_add_permission(request):
            yield {"label": "Duplicate", "url": f"{reverse('admin:jobs_schedule_add')}?copy_of={obj.pk}"}

    def get_urls(self) -> list[URLPattern]:
        preview = path("preview/", self.admin_site.admin_view(self.preview_view), name="jobs_schedule_preview")
        return [preview, *super().get_urls()]


def _is_of_code(schedule: Schedule | None) -> bool:
    return schedule is not None and schedule.owner == Schedule.Owner.CODE
