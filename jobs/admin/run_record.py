"""Runs of workflows that have ended, as they are remembered in the database: to be looked through, and retried."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin.acting import ActingAdmin
from jobs.admin.run_deeds import RETRY
from jobs.admin.schedule_list import span
from jobs.models import RunRecord

LENGTHS = (
    ("1", "under 1 s", 0.0, 1.0),
    ("60", "1 s to 1 min", 1.0, 60.0),
    ("3600", "1 min to 1 h", 60.0, 3_600.0),
    ("more", "1 h and longer", 3_600.0, float("inf")),
)
"""Choices of the filter: its value, its words, from and to how many seconds."""


class LengthFilter(admin.SimpleListFilter):
    """By how long they took."""

    title = "duration"
    parameter_name = "took"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, words) for value, words, *_ in LENGTHS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunRecord]) -> QuerySet[RunRecord]:
        for value, _, least, most in LENGTHS:
            if value == self.value():
                found = queryset.filter(seconds__gte=least)
                return found if most == float("inf") else found.filter(seconds__lt=most)
        return queryset


@admin.register(RunRecord)
class RunRecordAdmin(ActingAdmin):
    """Nobody edits what was; a run that is still in the store can be retried."""

    nothing_yet = "No run has ended yet. Those under way are on the dashboard, under Workflows."
    list_display = ("link", "workflow", "state", "took", "finished_at", "nodes", "version", "schedule")
    list_display_links = None
    list_filter = ("state", LengthFilter, "finished_at", ("schedule", admin.EmptyFieldListFilter), "workflow")
    search_fields = ("run", "workflow", "schedule")
    date_hierarchy = "finished_at"
    list_per_page = 50
    show_full_result_count = False
    actions = ("retry_selected",)

    @admin.display(description="run", ordering="run")
    def link(self, record: RunRecord) -> SafeString:
        url = f"{reverse('dashboard:workflows')}{quote(record.run, safe='')}/"
        return format_html('<a href="{}">{}</a>', url, record.run)

    @admin.display(description="took", ordering="seconds")
    def took(self, record: RunRecord) -> str:
        return span(record.seconds)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: RunRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: RunRecord | None = None) -> bool:
        return False

    @admin.action(description="Retry selected runs", permissions=["operate"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[RunRecord]) -> HttpResponseBase | None:
        ids = list(queryset.values_list("run", flat=True))
        return self.act_on_selected(request, ids, "retry_selected", RETRY, noun="run")
