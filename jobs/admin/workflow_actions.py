"""What people do to workflows in the admin, besides editing them: go back to a version, take the definition away.

All of it goes through ``jobs.api.workflows``, as on the command line and on the dashboard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from jobs.admin.mirrored import acting_in_admin
from jobs.api import workflows
from jobs.exceptions import SchedulerError
from jobs.models import Workflow


class WorkflowActions(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """The pages of one workflow."""

    def get_urls(self) -> list[URLPattern]:
        def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
            return path(f"<int:pk>/{route}/", self.admin_site.admin_view(view), name=f"jobs_workflow_{route}")

        return [page("versions", self.versions_view), page("file", self.file_view), *super().get_urls()]

    def tools(self, request: HttpRequest, workflow: Workflow) -> Iterable[dict[str, str]]:
        """The buttons above the form of a workflow, for what this user may do."""
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
            messages.error(request, f"{error} {error.fix}".strip())
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
            messages.error(request, f"{error} {error.fix}".strip())
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
