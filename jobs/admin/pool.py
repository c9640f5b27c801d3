"""Pools in the admin: what they are for, their slots, and what goes on in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.admin.mirrored import MirroredAdmin, live_number
from jobs.api import stats
from jobs.conf import get_settings
from jobs.models import Pool
from jobs.services import reconciler


@admin.register(Pool)
class PoolAdmin(MirroredAdmin):
    list_display = ("name", "description", "slots_in_force", "ready", "scheduled", "running", "dead", "workers")
    search_fields = ("name", "description")
    fields = ("name", "description", "slots")

    ready = live_number("ready", "ready")
    scheduled = live_number("scheduled", "scheduled")
    running = live_number("leased", "running")
    dead = live_number("dead", "dead")
    workers = live_number("workers", "workers")

    @admin.display(description="slots per worker", ordering="slots")
    def slots_in_force(self, pool: Pool) -> str:
        if pool.slots is not None:
            return str(pool.slots)
        settings = get_settings()
        return f"{settings.pools.get(pool.name, settings.slots)} (as declared)"

    def live_numbers(self) -> Mapping[str, Any]:
        return {pool.name: pool for pool in stats.snapshot().pools}

    def push(self, names: Collection[str]) -> reconciler.Reconciled:
        return reconciler.push_pools(names)

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> tuple[str, ...]:
        # Jobs, settings and code refer to the name: under a new one it would be another pool.
        return ("name",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Pool | None = None) -> bool:
        # The row of a pool that the settings or the code name would be back after the next start.
        comes_back = obj is not None and obj.name in reconciler.declared_pools()
        return super().has_delete_permission(request, obj) and not comes_back
