"""The audit log: who changed what, when, from where, and what it was before and after. Rows are only ever added, and go
when the project's time for them is over: nobody can take out one of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NoReturn

from django.db import models, router
from django.utils import timezone


class AppendOnly(TypeError):
    """An entry of the audit log cannot be changed or removed."""

    def __init__(self) -> None:
        super().__init__("An entry of the audit log cannot be changed or removed.")


class Entries(models.QuerySet["AuditEntry"]):
    """Reads and adds; everything else is refused, but to forget all that is older than a moment."""

    def forget(self, before: datetime, *, most: int = 1000) -> int:
        """Removes the oldest entries from before this moment, at most so many; how many."""
        old = [*self.filter(at__lt=before).order_by("at").values_list("pk", flat=True)[:most]]
        self.filter(pk__in=old)._raw_delete(router.db_for_write(self.model))
        return len(old)

    def bulk_create(
        self,
        objs: Iterable[AuditEntry],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        *_replaced: Any,
        **_options: Any,
    ) -> list[AuditEntry]:
        if update_conflicts:
            raise AppendOnly
        return super().bulk_create(objs, batch_size, ignore_conflicts)

    def update(self, **_values: Any) -> NoReturn:
        raise AppendOnly

    def bulk_update(self, *_args: Any, **_options: Any) -> NoReturn:
        raise AppendOnly

    def delete(self) -> NoReturn:
        raise AppendOnly


class AuditEntry(models.Model):
    """One control that took effect. Written by ``jobs.api.audit`` and by nothing else."""

    class Source(models.TextChoices):
        """Where the control was given."""

        COMMAND = "command", "Command line"
        ADMIN = "admin", "Admin"
        DASHBOARD = "dashboard", "Dashboard"
        API = "api", "HTTP API"
        PYTHON = "python", "Program"

    at = models.DateTimeField(default=timezone.now, db_index=True)
    who = models.CharField(max_length=200, help_text="User name, or the system's user behind a command or a program.")
    source = models.CharField("from", max_length=16, choices=Source.choices)
    action = models.CharField(max_length=64, help_text="Noun and verb: pool.pause.", db_index=True)
    target = models.CharField(max_length=300, blank=True, help_text="Name or id of what was changed.", db_index=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)

    objects = Entries.as_manager()

    class Meta:
        ordering = ["-id"]
        base_manager_name = "objects"
        default_permissions = ("view",)
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.who}: {self.action} {self.target}".rstrip()

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise AppendOnly
        super().save(
            **{**options, "force_insert": True}
        )  # or one that was made with the id of another would replace it

    def delete(self, *_args: Any, **_options: Any) -> NoReturn:
        raise AppendOnly
