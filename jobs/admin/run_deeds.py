"""What people do to runs of workflows from lists in the admin."""

from __future__ import annotations

from django.forms import Form

from jobs.admin.acting import Deed
from jobs.admin.pausing import ReasonForm
from jobs.api import workflows
from jobs.api.reach import of_run


def _cancel(run_id: str, form: Form) -> None:
    workflows.cancel(run_id, reason=form.cleaned_data["reason"])


def _pause(run_id: str, form: Form) -> None:
    workflows.pause(run_id, reason=form.cleaned_data["reason"])


RETRY = Deed(
    "Retry",
    "The nodes that failed run again, and what was skipped because of them waits for them. What has run stays.",
    lambda run_id, form: workflows.retry(run_id),
    of_run,
)
DEEDS: dict[str, Deed] = {
    "cancel": Deed(
        "Cancel",
        "What waits never starts, running jobs are asked to stop, nodes that are marked always still run.",
        _cancel,
        of_run,
        ReasonForm,
    ),
    "retry": RETRY,
    "pause": Deed(
        "Pause", "No further node becomes a job until it is resumed. What runs goes on.", _pause, of_run, ReasonForm
    ),
    "resume": Deed("Resume", "Nodes are released again.", lambda run_id, form: workflows.resume(run_id), of_run),
}
"""Verb → what it does to each run that is selected."""
