"""Tokens of the HTTP API in the admin: who has which, and taking them back. Secrets are in no page: none is kept."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from jobs import api
from jobs.admin.mirrored import acting_in_admin
from jobs.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """To be looked at and revoked. Made by the command ``tokens create``, which shows the secret once."""

    nothing_yet = "There is no token yet. Make one with “manage.py tokens create”, which shows its secret once."
    list_display = ("id", "user", "name", "state", "scopes", "created_at", "expires_at", "last_used_at")
    list_display_links = None
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "user")
    search_fields = ("name",)
    list_select_related = ("user",)
    show_full_result_count = False
    actions = ("revoke",)

    @admin.display(description="state")
    def state(self, row: ApiToken) -> str:
        return row.state_at(timezone.now())

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        with acting_in_admin(request):
            revoked = [api.tokens.revoke(id) for id in queryset.values_list("pk", flat=True)]
        messages.success(request, f"{len(revoked)} revoked: from now on they open nothing.")

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        with acting_in_admin(request):
            api.tokens.forget(obj.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return super().has_delete_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not of a selection: a token that was revoked stays listed, so that the audit log can be read beside it."""
        return obj is not None and super().has_delete_permission(request, obj)
