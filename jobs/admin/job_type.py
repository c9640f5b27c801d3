"""Job types in the admin: what the code declares, what is overridden, how often they succeed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from jobs.admin.mirrored import UNKNOWN, MirroredAdmin
from jobs.admin.pausing import PausingAdmin
from jobs.api import stats, types
from jobs.api.reach import Reach
from jobs.core.pause import by_whom
from jobs.models import JobType, Pool
from jobs.models.job_type import OVERRIDABLE
from jobs.services import reconciler

AS_DECLARED: dict[str, Any] = {"pool": "", "priority": None, "max_retries": None, "timeout": None}


class OverriddenFilter(admin.SimpleListFilter):
    """Types whose behaviour differs from what the code says."""

    title = "overrides"
    parameter_name = "overridden"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "With overrides"), ("no", "As declared")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[JobType]) -> QuerySet[JobType]:
        as_declared = Q(enabled=True, **AS_DECLARED)
        match self.value():
            case "yes":
                return queryset.exclude(as_declared)
            case "no":
                return queryset.filter(as_declared)
        return queryset


@admin.register(JobType)
class JobTypeAdmin(PausingAdmin, MirroredAdmin):
    noun = "type"
    unseen: Mapping[str, Any] = {}
    nothing_yet = (
        'There is no job type yet. Declare one in code, @job("email.send"), and it appears when a process starts.'
    )
    list_display = (
        "name",
        "enabled",
        "paused",
        "registered",
        "pool_in_force",
        "overridden",
        "succeeded",
        "failed",
        "dead",
    )
    list_filter = ("enabled", "registered", OverriddenFilter)
    search_fields = ("name", "function", "description")
    actions = ("pause", "resume", "enable", "disable", "use_declared")
    readonly_fields = ("name", "function", "description", "declared_defaults", "registered", "last_seen")
    fieldsets = (
        (
            "In the code",
            {
                "fields": readonly_fields,
                "description": "Copied from the code by each migrate and each start of a worker host.",
            },
        ),
        (
            "While it runs",
            {
                "fields": ("enabled", *OVERRIDABLE),
                "description": "In force within seconds, without a restart. Where a field is empty, the code decides.",
            },
        ),
    )

    @admin.display(description="declared defaults")
    def declared_defaults(self, job_type: JobType) -> SafeString:
        return format_html_join(
            "", "<div>{}: {}</div>", ((option, _shown(job_type.declared.get(option))) for option in OVERRIDABLE)
        )

    @admin.display(description="pool")
    def pool_in_force(self, job_type: JobType) -> Any:
        return job_type.effective("pool")

    @admin.display(description="overrides", empty_value=UNKNOWN)
    def overridden(self, job_type: JobType) -> str:
        return ", ".join(
            f"{option} {_shown(override)} (declared: {_shown(job_type.declared.get(option))})"
            for option in OVERRIDABLE
            if (override := job_type.override(option)) is not None
        )

    @admin.display(description="succeeded")
    def succeeded(self, job_type: JobType) -> Any:
        return _total(job_type, "succeeded")

    @admin.display(description="failed attempts")
    def failed(self, job_type: JobType) -> Any:
        return _total(job_type, "failed")

    @admin.display(description="died")
    def dead(self, job_type: JobType) -> Any:
        return _total(job_type, "dead")

    @admin.action(description="Enable selected job types", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[JobType]) -> None:
        count = self.update_all(request, queryset, enabled=True)
        messages.success(request, f"Enabled {_types(count)}: waiting jobs run again.")

    @admin.action(description="Disable selected job types", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[JobType]) -> None:
        count = self.update_all(request, queryset, enabled=False)
        messages.success(request, f"Disabled {_types(count)}: jobs are kept and none is started.")

    @admin.action(description="Drop the overrides of selected job types", permissions=["change"])
    def use_declared(self, request: HttpRequest, queryset: QuerySet[JobType]) -> None:
        count = self.update_all(request, queryset, **AS_DECLARED)
        messages.success(request, f"Dropped the overrides of {_types(count)}. Whether enabled stays as it was.")

    @admin.display(description="paused", empty_value=UNKNOWN)
    def paused(self, job_type: JobType) -> str | None:
        live = getattr(job_type, "live", None)
        if live is None:
            return None
        pause = live.get("paused")
        return by_whom(pause.by, pause.reason) if pause else "no"

    def live_numbers(self) -> Mapping[str, Any]:
        totals, paused = stats.types(), types.paused()
        return {name: {**totals.get(name, {}), "paused": paused.get(name)} for name in {*totals, *types.names()}}

    def pause_one(self, name: str, **options: Any) -> object:
        return types.pause(name, **options)

    def resume_one(self, name: str) -> object:
        types.resume(name)
        return None

    def reach_of(self, name: str) -> Reach:
        return None  # jobs of any type may be in any pool

    def push(self, names: Collection[str]) -> reconciler.Reconciled:
        return reconciler.push_types(names)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.pool and not Pool.objects.filter(name=obj.pool).exists():
            messages.warning(
                request, f"No pool {obj.pool!r} was known so far: do workers serve it, or was it mistyped?"
            )

    def get_form(
        self, request: HttpRequest, obj: JobType | None = None, change: bool = False, **kwargs: Any
    ) -> type[ModelForm[JobType]]:
        """Shows the declared value where an empty field means just that."""
        form: type[ModelForm[JobType]] = super().get_form(request, obj, change, **kwargs)
        for option in OVERRIDABLE:
            if obj and option in form.base_fields:
                form.base_fields[option].widget.attrs["placeholder"] = _shown(obj.declared.get(option))
        return form

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # job types come from the code

    def has_delete_permission(self, request: HttpRequest, obj: JobType | None = None) -> bool:
        # The row of a type that the code still has would be back after the next start.
        return super().has_delete_permission(request, obj) and (obj is None or not obj.registered)


def _types(count: int) -> str:
    return f"{count} job type{'' if count == 1 else 's'}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return UNKNOWN if value is None else str(value)


def _total(job_type: Any, counter: str) -> Any:
    live = getattr(job_type, "live", None)
    return UNKNOWN if live is None else live.get(counter, 0)
