"""Workflows in the admin: a form of nodes and edges that is checked as a whole, the graph drawn, its versions.

Every change goes through the rows, which become a version when they are saved (``jobs.models.workflow``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse

from jobs.admin.mirrored import acting_in_admin
from jobs.admin.workflow_actions import WorkflowActions
from jobs.admin.workflow_form import (
    FIELDS_OF_EDGE,
    FIELDS_OF_NODE,
    EdgeInline,
    NodeInline,
    WorkflowForm,
    suggestions,
)
from jobs.api import workflows
from jobs.core.workflow import Definition, Graph, definition_picture, draw, layout
from jobs.exceptions import WorkflowInvalid
from jobs.models import Workflow

SPARE_FIELDS = 100
TOO_LARGE = (
    "It has too many nodes for a form. Write it to a file with “workflows export {name}”, change that, "
    "and bring it back with “workflows import”."
)


@admin.register(Workflow)
class WorkflowAdmin(WorkflowActions):
    form = WorkflowForm
    inlines = (NodeInline, EdgeInline)
    nothing_yet = (
        "There is no workflow yet. Add one here, or send a file: “manage.py workflows define --file nightly.json”"
    )
    list_display = ("name", "description", "version", "node_count", "changed_at", "changed_by")
    search_fields = ("name", "description", "nodes__key", "nodes__job_type")
    list_per_page = 50

    class Media:
        css = {"all": ["jobs/schedule.css", "jobs/workflow_graph.css", "jobs/workflow.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        rows: QuerySet[Workflow] = super().get_queryset(request)
        return rows.annotate(node_count=Count("nodes", distinct=True))

    @admin.display(description="nodes", ordering="node_count")
    def node_count(self, row: Any) -> int:
        return int(row.node_count)

    def get_readonly_fields(self, request: HttpRequest, obj: Workflow | None = None) -> tuple[str, ...]:
        # Runs, schedules and versions refer to the name: under a new one it would be another workflow.
        return ("name",) if obj else ()

    # The form ---------------------------------------------------------------------------------------------------------

    def get_inlines(self, request: HttpRequest, obj: Workflow | None) -> Any:
        return () if obj is not None and is_large(obj) else super().get_inlines(request, obj)

    def _create_formsets(self, request: HttpRequest, obj: Any, change: bool) -> Any:
        """The edges' formset checks the graph as a whole, for which it needs the nodes of the same form."""
        formsets, inlines = super()._create_formsets(request, obj, change)  # type: ignore[misc]  # the stubs lack it
        if formsets:
            nodes, edges = formsets
            edges.nodes = nodes
        return formsets, inlines

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Workflow | None = None,
    ) -> HttpResponse:
        formsets = [inline.formset for inline in context["inline_admin_formsets"]]
        found, trouble = _graph(obj, formsets, is_posted=request.method == "POST")
        graph = Graph(found.nodes) if found else None
        context |= {
            "picture": definition_picture(graph, layout(graph)) if graph else None,
            "lines": [*draw(graph)] if graph else [],
            "trouble": trouble,
            "tools": self.tools(request, obj) if obj else (),
            "note": TOO_LARGE.format(name=obj.name) if obj and not formsets else "",
            "suggestions": suggestions(graph.nodes if graph else ()),
            "may_draw": bool(formsets) and (add or self.has_change_permission(request, obj)),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    # Saving -----------------------------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Workflow, form: Any, change: bool) -> None:
        setattr(obj, "told_before", workflows.told(Workflow.objects.get(pk=obj.pk)) if change else {})  # noqa: B010 - no field
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        row: Workflow = form.instance
        row.publish(by=request.user.get_username())
        with acting_in_admin(request):
            workflows.record_change(row, getattr(row, "told_before", {}))

    def delete_model(self, request: HttpRequest, obj: Workflow) -> None:
        with acting_in_admin(request):
            workflows.forget(obj.name)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> None:
        with acting_in_admin(request):
            for name in [*queryset.values_list("name", flat=True)]:
                workflows.forget(name)


def is_large(row: Workflow) -> bool:
    """Whether a form of its nodes and edges would have more fields than Django takes."""
    most: int | None = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    fields = row.nodes.count() * FIELDS_OF_NODE + row.edges.count() * FIELDS_OF_EDGE
    return most is not None and fields > most - SPARE_FIELDS


def _graph(row: Workflow | None, formsets: list[Any], *, is_posted: bool) -> tuple[Definition | None, Iterable[str]]:
    """What is drawn: the form as it was sent, where it makes a workflow, else what is stored. And what is wrong."""
    if is_posted and formsets:
        sent = formsets[-1].graph
        return sent, ()
    if row is None:
        return None, ()
    try:
        return row.definition(), ()
    except WorkflowInvalid as error:
        return None, [problem.message for problem in error.problems]
