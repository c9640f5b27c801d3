"""A pool as people know it: its name, what it is for, and how many slots each worker process gives it."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, RegexValidator
from django.db import models

from jobs.models.by_name import ByName

MOST_SLOTS = 1000
"""Slots are threads of one process; beyond this a typing error is likelier than a plan."""

pool_name = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z",
    "Use 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.",
    "pool_name",
)


PERMISSIONS = (
    ("view_dashboard", "Can see jobs, pools, workers and the dead-letter list"),
    ("operate", "Can cancel, retry, resubmit, run now, pause, resume and scale"),
    ("enqueue", "Can enqueue jobs"),
    ("administer", "Can delete, discard, edit payloads, change partitions and see redacted values"),
)
"""What a person may do with running work, on dashboard, API and command line. None includes another.

They belong to no row; they are declared on pools because a model without a table of its own would break ``dumpdata``.
"""


class Pool(models.Model):
    """Live settings of one pool. Jobs, counts and pauses live in Redis; a pool needs no row to work."""

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[pool_name],
        help_text="Job types, commands and keys in Redis refer to the pool by this name; it cannot be changed later.",
    )
    description = models.CharField(max_length=200, blank=True, help_text="What belongs in this pool, for colleagues.")
    slots = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_SLOTS)],
        help_text="Jobs that one worker process runs at a time in this pool. Empty: as the settings say; 0: none. "
        "Running workers follow within seconds.",
    )

    objects = ByName["Pool"]()

    class Meta:
        ordering = ["name"]
        permissions = PERMISSIONS
        constraints = [
            models.CheckConstraint(
                name="jobs_pool_slots_in_range",
                condition=models.Q(slots__isnull=True) | models.Q(slots__range=(0, MOST_SLOTS)),
                violation_error_message=f"Slots must be from 0 to {MOST_SLOTS}, or empty.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)
