"""What people do to workflows in the admin, besides editing them: start them, steer their runs and schedules, go back
to a version, take the definitions away.

All of it goes through ``jobs.api.workflows``, as on the command line and on the dashboard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.forms import Form, JSONField
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from jobs.admin import run_deeds
from jobs.admin.acting import ActingAdmin, Deed, sentence
from jobs.admin.mirrored import PATIENCE_SECONDS, acting_in_admin
from jobs.admin.pausing import ReasonForm
from jobs.api import audit, budget, schedules, workflows
from jobs.api.reach import Reach, of_workflow
from jobs.api.redaction import tell_exported
from jobs.core.workflow import Definition
from jobs.exceptions import SchedulerError
from jobs.models import Schedule, Workflow

RUNS_SHOWN = 50


class StartForm(Form):
    """With what a run is started."""

    payload = JSONField(
        required=False, initial=dict, help_text='As a JSON object, for {"$from": "run.payload.…"} in nodes.'
    )

    def clean_payload(self) -> Any:
        payload = self.cleaned_data["payload"]
        if payload is not None and not isinstance(payload, dict):
            raise ValidationError('Write an object: {"day": "2026-01-31"}.')
        return payload


class WorkflowActions(ActingAdmin):
    """The pages of one workflow, and the actions on a selection of them."""

    actions = ("start_selected", "pause_schedules", "resume_schedules", "export_selected")

    def get_urls(self) -> list[URLPattern]:
        def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
            return path(f"<int:pk>/{route}/", self.admin_site.admin_view(view), name=f"jobs_workflow_{route}")

        return [
            page("start", self.start_view),
            page("runs", self.runs_view),
            page("versions", self.versions_view),
            page("file", self.file_view),
            *super().get_urls(),
        ]

    def tools(self, request: HttpRequest, workflow: Workflow) -> Iterable[dict[str, str]]:
        """The buttons above the form of a workflow, for what this user may do."""
        if self.has_enqueue_permission(request):
            yield self._tool("Start", "start", workflow)
        yield self._tool("Runs", "runs", workflow)
        yield self._tool("Versions", "versions", workflow)
        yield self._tool("Download", "file", workflow)

    @staticmethod
    def _tool(label: str, view: str, workflow: Workflow) -> dict[str, str]:
        return {"label": label, "url": reverse(f"admin:jobs_workflow_{view}", args=[workflow.pk])}

    def found(self, request: HttpRequest, pk: int) -> Workflow:
        """The workflow, if this user may see it. Raises Http404, PermissionDenied."""
        workflow: Workflow | None = self.get_object(request, str(pk))
        if workflow is None:
            raise Http404
        if not self.has_view_or_change_permission(request, workflow):
            raise PermissionDenied
        return workflow

    # Runs -------------------------------------------------------------------------------------------------------------

    def has_enqueue_permission(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm("jobs.enqueue"))

    def start_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Asks for the payload, and on POST starts a run."""
        if not self.has_enqueue_permission(request):
            raise PermissionDenied
        workflow = self.found(request, pk)
        form = StartForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            self.attempt(
                request,
                workflow.name,
                of_workflow,
                lambda: f"Workflow {workflow.name} was started: run {_start(workflow.name, form)}.",
            )
            return redirect("admin:jobs_workflow_runs", pk)
        page = self.page(request, "Start", workflow) | {
            "form": form,
            "sentences": ["One run of the newest version is started."],
            "button": "Start",
        }
        return TemplateResponse(request, "admin/jobs/act.html", page)

    def runs_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Its newest runs; on POST those that are selected are cancelled, retried, paused or resumed."""
        workflow = self.found(request, pk)
        if request.method == "POST":
            if not self.has_operate_permission(request):
                raise PermissionDenied
            return self._steer(request, workflow) or redirect(request.path)
        may_operate = self.has_operate_permission(request)
        page = self.page(request, "Runs", workflow) | {"may_operate": may_operate, "deeds": run_deeds.DEEDS}
        try:
            with budget(PATIENCE_SECONDS):
                page["runs"] = workflows.list(name=workflow.name, limit=RUNS_SHOWN).items
        except SchedulerError as error:
            messages.warning(request, f"The runs are missing: the store is unreachable. {sentence(error)}")
        return TemplateResponse(request, "admin/jobs/workflow/runs.html", page)

    def _steer(self, request: HttpRequest, workflow: Workflow) -> HttpResponseBase | None:
        verb, ids = request.POST.get("action", ""), request.POST.getlist(ACTION_CHECKBOX_NAME)[:RUNS_SHOWN]
        if verb not in run_deeds.DEEDS:
            raise Http404
        if not ids:
            messages.warning(request, "Select the runs first.")
            return None
        return self.act_on_selected(request, ids, verb, run_deeds.DEEDS[verb], noun="run", row=workflow)

    # A selection ------------------------------------------------------------------------------------------------------

    @admin.action(description="Start selected workflows", permissions=["enqueue"])
    def start_selected(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponseBase | None:
        return self.act_on_selected(request, _names(queryset), "start_selected", START_EACH)

    @admin.action(description="Pause schedules of selected workflows", permissions=["operate"])
    def pause_schedules(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponseBase | None:
        return self.act_on_selected(request, _names(queryset), "pause_schedules", PAUSE_SCHEDULES)

    @admin.action(description="Resume schedules of selected workflows", permissions=["operate"])
    def resume_schedules(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponseBase | None:
        return self.act_on_selected(request, _names(queryset), "resume_schedules", RESUME_SCHEDULES)

    @admin.action(description="Export selected workflows", permissions=["view"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponseBase | None:
        """One file with all of them, as ``workflows import`` takes it."""
        try:
            found = [row.definition() for row in queryset]
        except SchedulerError as error:
            messages.error(request, sentence(error))
            return None
        return _file({"workflows": [_visible(request, each) for each in found]}, "workflows.json")

    # Versions ---------------------------------------------------------------------------------------------------------

    def versions_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """What it has been, and back to any of that."""
        workflow = self.found(request, pk)
        may_restore = self.has_change_permission(request, workflow)
        if request.method == "POST":
            if not may_restore:
                raise PermissionDenied
            self._restore(request, workflow, request.POST.get("version", ""))
            return redirect(request.path)
        page = self.page(request, "Versions", workflow) | {
            "versions": workflows.versions(workflow.name),
            "may_restore": may_restore,
        }
        return TemplateResponse(request, "admin/jobs/workflow/versions.html", page)

    def _restore(self, request: HttpRequest, workflow: Workflow, number: str) -> None:
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            raise Http404
        try:
            with acting_in_admin(request):
                made = workflows.restore(workflow.name, int(number), by=request.user.get_username())
        except SchedulerError as error:
            messages.error(request, sentence(error))
        else:
            messages.success(
                request, f"{workflow.name} is again what it was in version {number}: version {made.version}."
            )

    def file_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """The definition as a file, as ``workflows export`` writes it."""
        workflow = self.found(request, pk)
        try:
            found = workflow.definition()
        except SchedulerError as error:
            messages.error(request, sentence(error))
            return redirect("admin:jobs_workflow_change", pk)
        return _file(_visible(request, found), f"workflow-{pk}.json")


def _visible(request: HttpRequest, definition: Definition) -> dict[str, Any]:
    """As this user may see it; of what is shown to few there is an entry in the audit log."""
    user: Any = request.user
    masked = workflows.shown(definition)
    if not user.has_perm("jobs.administer"):
        return masked
    whole = definition.as_dict()
    if whole != masked:
        with audit.acting(user.get_username(), "admin"):
            tell_exported("workflow", [definition.name])
    return whole


def _file(document: Any, name: str) -> HttpResponse:
    return HttpResponse(
        json.dumps(document, indent=2, ensure_ascii=False),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _names(rows: QuerySet[Workflow]) -> list[str]:
    return list(rows.values_list("name", flat=True))


def _start(name: str, form: Form) -> str:
    """The id of the run."""
    return workflows.start(name, form.cleaned_data["payload"] or {}).id


def _schedules(name: str) -> list[str]:
    """Those that start a workflow. ScheduleNotFound where none does."""
    found = list(Schedule.objects.filter(workflow=name).values_list("name", flat=True))
    if not found:
        raise schedules.ScheduleNotFound("No schedule starts it.")
    return found


def _pause_schedules(name: str, form: Form) -> None:
    for schedule in _schedules(name):
        schedules.pause(schedule, by=audit.actor().who, reason=form.cleaned_data["reason"])


def _resume_schedules(name: str, form: Form) -> None:
    for schedule in _schedules(name):
        schedules.resume(schedule, by=audit.actor().who)


def _reach_of_schedules(name: str) -> Reach:
    return schedules.reach_of(_schedules(name))


START_EACH = Deed(
    "Start", "One run of the newest version of each is started, with this payload.", _start, of_workflow, StartForm
)
PAUSE_SCHEDULES = Deed(
    "Pause schedules",
    "The schedules that start them make no runs until they are resumed. Runs that have begun go on.",
    _pause_schedules,
    _reach_of_schedules,
    ReasonForm,
)
RESUME_SCHEDULES = Deed(
    "Resume schedules", "The schedules that start them fire again.", _resume_schedules, _reach_of_schedules
)
