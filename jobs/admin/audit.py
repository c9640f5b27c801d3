"""The audit log in the admin: to be read, and nothing else."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    nothing_yet = "Nobody has changed anything yet. Whatever people change is written down by itself."
    list_display = ("at", "who", "action", "target", "source", "reason")
    list_filter = ("source", "action")
    search_fields = ("who", "target", "reason")
    date_hierarchy = "at"
    fields = ("at", "who", "source", "action", "target", "reason", "before", "after")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
