"""Schedules in the admin: a form that shows what it would do, a list that shows what was done, and what people may do.

The row is the definition; every change goes through ``jobs.api.schedules`` or the row's own ``save``, which write the
history. Rows that the code owns are shown and steered here, not edited.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar, cast

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from jobs.admin.mirrored import PATIENCE_SECONDS, acting_in_admin
from jobs.admin.schedule_actions import ScheduleActions
from jobs.admin.schedule_form import TIMING, ScheduleForm, suggestions
from jobs.admin.schedule_list import ScheduleChangeList, ScheduleColumns, StateFilter
from jobs.admin.schedule_preview import Known, crowd, shown
from jobs.api import budget, schedules, stats
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

WHY_READ_ONLY = (
    "This schedule is declared in the code, which would undo what is changed here: change it there. "
    "It can be started, paused and resumed."
)


@admin.register(Schedule)
class ScheduleAdmin(ScheduleColumns, ScheduleActions):
    form = ScheduleForm
    nothing_yet = 'There is no schedule yet. Add one here, or declare one in code: @job(schedule=Cron("30 2 * * *"))'
    list_display = ("name", "when", "state", "last", "next")
    list_filter = (StateFilter, "kind", "owner", "timezone")
    search_fields = ("name", "job_type", "workflow", "cron")
    list_per_page = 50

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["jobs/schedule.css"]}

    fieldsets = (
        (None, {"fields": ("name", "enabled", "job_type", "workflow", "payload")}),
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
        return ("name", "shown_payload") if obj else ()

    def get_fieldsets(self, request: HttpRequest, obj: Schedule | None = None) -> Any:
        """Who may only look sees no argument that the job type redacts."""
        if obj is None or self.has_change_permission(request, obj):
            return self.fieldsets
        (_, first), *others = self.fieldsets
        return (
            (None, {"fields": ["shown_payload" if name == "payload" else name for name in first["fields"]]}),
            *others,
        )

    @admin.display(description="payload")
    def shown_payload(self, obj: Schedule) -> str:
        return json.dumps(schedules.shown_fields(obj.fields)["payload"], ensure_ascii=False)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ScheduleChangeList

    # The form and its preview -----------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        before = Schedule.objects.get(pk=obj.pk).snapshot() if change else {}
        obj.changed_by = request.user.get_username()
        super().save_model(request, obj, form, change)
        with acting_in_admin(request):
            action = "schedule.update" if change else "schedule.create"
            schedules.record_change(action, obj.name, before, obj.snapshot())

    def delete_model(self, request: HttpRequest, obj: Schedule) -> None:
        before = obj.snapshot()
        super().delete_model(request, obj)
        with acting_in_admin(request):
            schedules.record_change("schedule.delete", obj.name, before, {})

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        gone = {row.name: row.snapshot() for row in queryset}
        super().delete_queryset(request, queryset)
        with acting_in_admin(request):
            for name, before in gone.items():
                schedules.record_change("schedule.delete", name, before, {})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A copy starts with the fields of the schedule named in the address, and without a name."""
        initial = dict(super().get_changeform_initial_data(request))
        copied = initial.pop("copy_of", None)
        if copied is None:
            return initial
        fields = self.found(request, str(copied)).fields
        return {**schedules.shown_fields(fields), "name": "", **initial}

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
            payload = form["payload"]  # a form that was refused has bound its fields already: theirs is what is shown
            payload.help_text = format_html(
                '{} <code class="schedule-signature" id="payload-signature">{}</code>',
                payload.help_text,
                form.signature,
            )
        context |= {
            "shown": shown(form, self._known(obj), request.POST.get("viewer_zone", "")),
            "preview_url": self._preview_url(obj) if editable else "",
            "timing_fields": " ".join(TIMING),
            "suggestions": suggestions() if editable else {},
            "tools": self.tools(request, obj) if obj else (),
            "why_readonly": WHY_READ_ONLY if _is_of_code(obj) else "",
            "trouble": [obj.error] if obj and obj.error else (),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def preview_view(self, request: HttpRequest) -> HttpResponseBase:
        """What the form would do as it stands, for its script: GET, nothing is saved."""
        obj = self.found(request, request.GET["of"]) if request.GET.get("of") else None
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
        """What else the preview goes by. How long its jobs take is left out when the store does not say at once."""

        def usual(job_type: str) -> float | None:
            with suppress(SchedulerError), budget(PATIENCE_SECONDS):
                of_its_own = schedules.status([obj.name])[obj.name].usual_seconds if obj else None
                return of_its_own or (stats.durations(type=job_type)["run"]["p50"] if job_type else None)
            return None

        if obj is None:
            return Known(usual_seconds=usual, crowd=crowd(""))
        return Known(created_at=obj.created_at, fired=obj.firings, usual_seconds=usual, crowd=crowd(obj.name))

    def tools(self, request: HttpRequest, schedule: Schedule) -> Iterable[dict[str, str]]:
        yield from super().tools(request, schedule)
        if self.has_add_permission(request):
            yield {"label": "Duplicate", "url": f"{reverse('admin:jobs_schedule_add')}?copy_of={schedule.pk}"}

    def get_urls(self) -> list[URLPattern]:
        preview = path("preview/", self.admin_site.admin_view(self.preview_view), name="jobs_schedule_preview")
        return [preview, *super().get_urls()]


def _is_of_code(schedule: Schedule | None) -> bool:
    return schedule is not None and schedule.owner == Schedule.Owner.CODE
