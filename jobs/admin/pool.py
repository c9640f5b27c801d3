"""Pools in the admin: what they are for, their slots, and what goes on in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from jobs.admin.mirrored import UNKNOWN, MirroredAdmin, live_number
from jobs.admin.pausing import PausingAdmin
from jobs.api import pools, stats
from jobs.api.reach import Reach
from jobs.conf import get_settings
from jobs.core.autoscale import AutoscaleRule
from jobs.models import Pool
from jobs.services import reconciler


@admin.register(Pool)
class PoolAdmin(PausingAdmin, MirroredAdmin):
    noun = "pool"
    nothing_yet = "There is no pool yet. It appears with the first job type that names it, or is added here."
    list_display = ("name", "state", "slots_in_force", "autoscale", "ready", "scheduled", "running", "dead", "workers")
    list_filter = ("autoscale",)
    search_fields = ("name", "description")
    filter_horizontal = ("operators",)
    fieldsets = (
        (None, {"fields": ("name", "description", "slots", "max_running", "max_pending")}),
        ("Who may act in it", {"fields": ("operators",)}),
        (
            "Autoscaling",
            {
                "fields": (
                    "autoscale",
                    ("min_slots", "max_slots"),
                    ("target_wait_seconds", "tolerance_seconds"),
                    "cooldown_seconds",
                ),
                "description": "Slots follow how long jobs wait. Try it with a dry run first: "
                "`manage.py pools autoscale NAME` shows what it would do, and why.",
            },
        ),
    )

    ready = live_number("ready", "ready")
    scheduled = live_number("scheduled", "scheduled")
    running = live_number("leased", "running")
    dead = live_number("dead", "dead")
    workers = live_number("workers", "workers")

    @admin.display(description="state", empty_value=UNKNOWN)
    def state(self, pool: Pool) -> str | None:
        live = getattr(pool, "live", None)
        if live is None:
            return None
        return str(live.paused) if live.paused else "open"

    def pause_one(self, name: str, **options: Any) -> object:
        return pools.pause(name, **options)

    def resume_one(self, name: str) -> object:
        return pools.resume(name)

    def reach_of(self, name: str) -> Reach:
        return frozenset({name})

    @admin.display(description="slots per worker", ordering="slots")
    def slots_in_force(self, pool: Pool) -> str:
        live = getattr(pool, "live", None)
        if pool.autoscale == Pool.Autoscale.ON:
            return f"{live.slots if live else UNKNOWN} (autoscaled)"
        if pool.slots is not None:
            return str(pool.slots)
        settings = get_settings()
        return f"{settings.pools.get(pool.name, settings.slots)} (as declared)"

    def live_numbers(self) -> Mapping[str, Any]:
        return {pool.name: pool for pool in stats.snapshot().pools}

    def push(self, names: Collection[str]) -> reconciler.Reconciled:
        return reconciler.push_pools(names)

    def get_form(
        self, request: HttpRequest, obj: Pool | None = None, change: bool = False, **kwargs: Any
    ) -> type[ModelForm[Pool]]:
        """A form that says nothing of autoscaling leaves it as it is."""
        form: type[ModelForm[Pool]] = super().get_form(request, obj, change, **kwargs)
        for name in ("autoscale", *AutoscaleRule.__struct_fields__):
            if name in form.base_fields:
                form.base_fields[name].required = False
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> tuple[str, ...]:
        # Jobs, settings and code refer to the name: under a new one it would be another pool.
        return ("name",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Pool | None = None) -> bool:
        # The row of a pool that the settings or the code name would be back after the next start.
        comes_back = obj is not None and obj.name in reconciler.declared_pools()
        return super().has_delete_permission(request, obj) and not comes_back
