"""History of workflows: a row for each run that has ended. Written by ``jobs.services.run_recorder``, never edited."""

from __future__ import annotations

from django.db import models

from jobs.core.options import LONGEST_TEXT


class RunRecord(models.Model):
    """One run, as it ended last: a run that is retried has its row changed when it ends again."""

    class State(models.TextChoices):
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    run = models.CharField(max_length=LONGEST_TEXT, unique=True)
    workflow = models.CharField(max_length=LONGEST_TEXT, help_text="Its name, whether it is stored or not.")
    version = models.PositiveIntegerField(null=True, help_text="Of the stored workflow; empty: it was not stored.")
    state = models.CharField(max_length=9, choices=State.choices)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(db_index=True)
    seconds = models.FloatField(help_text="From its start to its end.")
    nodes = models.PositiveIntegerField()
    schedule = models.CharField(max_length=LONGEST_TEXT, blank=True, help_text="The schedule that started it.")

    class Meta:
        ordering = ["-finished_at", "-id"]
        indexes = [models.Index(fields=["workflow", "finished_at"], name="jobs_run_history")]
        default_permissions = ("view",)
        verbose_name = "run of a workflow"
        verbose_name_plural = "runs of workflows"

    def __str__(self) -> str:
        return f"{self.workflow} {self.run}: {self.state}"
