"""The history of schedules: who made them what they were, and from when on."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone as clock

from jobs.core.schedule.definition import FIELDS, LONGEST_NAME


class ScheduleChange(models.Model):
    """One entry of a schedule's history: who made it what it was from then on."""

    schedule = models.ForeignKey("jobs.Schedule", on_delete=models.SET_NULL, null=True, related_name="changes")
    name = models.CharField(max_length=LONGEST_NAME, db_index=True, help_text="Kept when the schedule is deleted.")
    version = models.PositiveIntegerField()
    at = models.DateTimeField(default=clock.now)
    by = models.CharField(max_length=150, blank=True, help_text="Empty: unknown.")
    action = models.CharField(max_length=20, help_text="created, changed, paused, resumed")
    snapshot = models.JSONField(help_text="Definition and pause after the change.")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} {self.action} (version {self.version})"

    @property
    def fields(self) -> dict[str, Any]:
        """The definition as it was from this change on."""
        return {name: self.snapshot.get(name) for name in FIELDS if name in self.snapshot}
