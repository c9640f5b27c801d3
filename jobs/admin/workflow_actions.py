"""What people do to workflows in the admin, besides editing them: go back to a version, take the definition away.

All of it goes through ``jobs.api.workflows``, as on the command line and on the dashboard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.forms import Form, JSONField
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from jobs.admin.mirrored import PATIENCE_SECONDS, acting_in_admin
from jobs.api import budget, workflows
from jobs.exceptions import SchedulerError
from jobs.models import Workflow

RUNS_SHOWN = 50
STEERING: dict[str, Callable[[str], object]] = {"cancel": workflows.cancel, "retry": workflows.retry}
Done = TypeVar("Done")


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


class WorkflowActions(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """The pages of one workflow."""

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

    def has_operate_permission(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm("jobs.operate"))

    def start_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Asks for the payload, and on POST starts a run."""
        if not self.has_enqueue_permission(request):
            raise PermissionDenied
        workflow = self.found(request, pk)
        form = StartForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            done = self._does(request, lambda: workflows.start(workflow.name, form.cleaned_data["payload"] or {}))
            if done is not None:
                messages.success(request, f"Workflow {workflow.name} was started: run {done.id}.")
            return redirect("admin:jobs_workflow_runs", pk)
        page = self.page(request, "Start", workflow) | {
            "form": form,
            "sentences": ["One run of the newest version is started."],
            "button": "Start",
        }
        return TemplateResponse(request, "admin/jobs/act.html", page)

    def runs_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Its newest runs; on POST one of them is cancelled or retried."""
        workflow = self.found(request, pk)
        if request.method == "POST":
            if not self.has_operate_permission(request):
                raise PermissionDenied
            self._steer(request, workflow, request.POST.get("run", ""), request.POST.get("verb", ""))
            return redirect(request.path)
        page = self.page(request, "Runs", workflow) | {"may_operate": self.has_operate_permission(request)}
        try:
            with budget(PATIENCE_SECONDS):
                page["runs"] = workflows.list(name=workflow.name, limit=RUNS_SHOWN).items
        except SchedulerError as error:
            messages.warning(request, f"The runs are missing: the store is unreachable. {_sentence(error)}")
        return TemplateResponse(request, "admin/jobs/workflow/runs.html", page)

    def _steer(self, request: HttpRequest, workflow: Workflow, run_id: str, verb: str) -> None:
        if verb not in STEERING:
            raise Http404

        def steer() -> object:
            if workflows.get(run_id).name != workflow.name:
                raise Http404
            return STEERING[verb](run_id)

        if self._does(request, steer) is not None:
            messages.success(request, f"Run {run_id}: {verb} is under way.")

    @staticmethod
    def _does(request: HttpRequest, what: Callable[[], Done]) -> Done | None:
        """Does it as this user; what was refused is said, and None answered."""
        try:
            with acting_in_admin(request):
                return what()
        except SchedulerError as error:
            messages.error(request, _sentence(error))
            return None

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
            messages.error(request, _sentence(error))
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
            messages.error(request, _sentence(error))
            return redirect("admin:jobs_workflow_change", pk)
        user: Any = request.user
        shown = found.as_dict() if user.has_perm("jobs.administer") else workflows.shown(found)
        text = json.dumps(shown, indent=2, ensure_ascii=False)
        return HttpResponse(
            text,
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="workflow-{pk}.json"'},
        )

    def page(self, request: HttpRequest, title: str, workflow: Workflow | None = None) -> dict[str, Any]:
        """What every page of ours tells its template."""
        to_list = reverse("admin:jobs_workflow_changelist")
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "object": workflow,
            "title": title,
            "subtitle": workflow.name if workflow else None,
            "back": reverse("admin:jobs_workflow_change", args=[workflow.pk]) if workflow else to_list,
        }


def _sentence(error: SchedulerError) -> str:
    return f"{error} {error.fix}".strip()
