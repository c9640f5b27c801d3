"""The form of a workflow in the admin: its nodes, its edges, and whether they make a workflow that can run.

Nodes and edges are checked together, as they would be started. What is wrong with a node is said at that node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from jobs.api import workflows
from jobs.api.redaction import restored, shown_value
from jobs.core.redaction import MASK
from jobs.core.workflow import Definition, Problem
from jobs.exceptions import WorkflowInvalid
from jobs.models import JobType, Pool, Workflow, WorkflowEdge, WorkflowNode
from jobs.models.workflow import document, stray_problems
from jobs.registry import registry

FIELDS_OF_NODE, FIELDS_OF_EDGE = 13, 6
"""Fields that a browser sends for each: Django refuses forms with more fields than a setting allows."""


def _offers(words: str) -> dict[str, str]:
    return {"class": "vTextField", "list": words, "autocomplete": "off"}


def _json(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"class": "vLargeTextField", "rows": rows, "spellcheck": "false"})


class WorkflowForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's takes none at run time
    """What a workflow has besides its graph. The button "Draw" shows the graph as it stands, and saves nothing."""

    class Meta:
        model = Workflow
        fields = ("name", "description", "timeout")

    @property
    def only_drawn(self) -> bool:
        return "_draw" in self.data

    def is_valid(self) -> bool:
        return super().is_valid() and not self.only_drawn


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = WorkflowNode
        fields = "__all__"  # noqa: DJ007 - the inline's fieldsets say which
        widgets = {
            "job_type": forms.TextInput(attrs=_offers("known-job-types")),
            "pool": forms.TextInput(attrs=_offers("known-pools")),
            "payload": _json(3),
            "more": _json(2),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial["payload"] = shown_value(self.instance.job_type, self.instance.payload)

    def clean(self) -> dict[str, Any]:
        """What was left masked stays as it was; of another type there is nothing behind a mask."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        payload = cleaned.get("payload")
        if cleaned.get("job_type") == self.instance.job_type:
            payload = cleaned["payload"] = restored(payload, self.instance.payload)
        if MASK in str(payload):
            self.add_error("payload", f"Write the values that are hidden as {MASK}.")
        return cleaned


class EdgeForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = WorkflowEdge
        fields = ("child", "parent", "kind")  # read as a sentence: load waits for extract until it has succeeded
        widgets = {
            "child": forms.TextInput(attrs=_offers("known-keys")),
            "parent": forms.TextInput(attrs=_offers("known-keys")),
        }


class NodeFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """The nodes that are there when the form is saved."""

    @property
    def kept(self) -> list[Any]:
        """The forms of them."""
        return kept(self)


class EdgeFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """The edges. It comes last, so the graph as a whole is checked here."""

    nodes: NodeFormSet
    """Of the same form; set by the admin, which makes both."""
    graph: Definition | None = None
    """What the form says, once it was found to be a workflow."""

    def clean(self) -> None:
        super().clean()
        if any(self.errors) or not self.nodes.is_valid() or not self.instance.name:
            return  # what is wrong already stands there
        nodes = [form.instance for form in self.nodes.kept]
        edges = [form.instance for form in kept(self)]
        problems = [*stray_problems(nodes, edges)]
        try:
            self.graph = workflows.validate(document(self.instance, nodes, edges))
        except WorkflowInvalid as error:
            problems += error.problems
        if problems:
            raise ValidationError([*self._told(problems)])

    def _told(self, problems: Iterable[Problem]) -> Iterable[str]:
        """Says each problem at the node that it is about; answers what is to be said above all of them."""
        forms_by_key = {form.instance.key: form for form in self.nodes.kept}
        for problem in problems:
            words = f"{problem.message}. {problem.fix}".strip().replace("?.", "?")
            about = next((key for key in problem.nodes if key in forms_by_key), None)
            if about is not None:
                forms_by_key[about].add_error(None, words)
            yield words


def kept(formset: Any) -> list[Any]:
    """The forms of a formset that stay or come when it is saved."""
    gone = formset.deleted_forms
    return [form for form in formset.forms if form not in gone and (form.instance.pk is not None or form.has_changed())]


class OfTheWorkflow(admin.options.InlineModelAdmin):  # type: ignore[type-arg]
    """Who may change a workflow may change its nodes and edges: they have no permissions of their own."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "change") or (obj is None and self._may(request, "add"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "view") or self.has_add_permission(request, obj)

    @staticmethod
    def _may(request: HttpRequest, verb: str) -> bool:
        user: Any = request.user
        return bool(user.has_perm(f"jobs.{verb}_workflow"))


class NodeInline(OfTheWorkflow, admin.StackedInline):  # type: ignore[type-arg]
    model = WorkflowNode
    form = NodeForm
    formset = NodeFormSet
    extra = 0
    min_num = 1
    readonly_fields = ("shown_payload",)
    fieldsets = (
        (None, {"fields": ("key", "job_type", "payload", ("join", "always"))}),
        (
            "Options of its job",
            {"fields": (("pool", "priority"), ("max_retries", "timeout"), "more"), "classes": ["collapse"]},
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may only look sees no argument that the job type redacts."""
        if self.has_change_permission(request, obj):
            return self.fieldsets
        (_, first), *others = self.fieldsets
        fields = ["shown_payload" if name == "payload" else name for name in first["fields"]]
        return ((None, {"fields": fields}), *others)

    @admin.display(description="payload")
    def shown_payload(self, node: WorkflowNode) -> str:
        return json.dumps(shown_value(node.job_type, node.payload), ensure_ascii=False)


class EdgeInline(OfTheWorkflow, admin.TabularInline):  # type: ignore[type-arg]
    model = WorkflowEdge
    form = EdgeForm
    formset = EdgeFormSet
    extra = 1


def suggestions(keys: Iterable[str]) -> dict[str, Iterable[str]]:
    """What the fields offer while they are typed in: id of the list → words."""
    return {
        "known-job-types": sorted({*registry.all(), *JobType.objects.values_list("name", flat=True)}),
        "known-pools": Pool.objects.values_list("name", flat=True),
        "known-keys": keys,
    }
