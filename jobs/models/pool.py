"""A pool as people know it: its name, what it is for, its slots and limits, and who sizes it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from jobs.core.autoscale import AutoscaleRule
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


SETTINGS = ("slots", "max_running", "max_pending", "autoscale")
"""What the engine is told of a pool: names as in ``Pool.settings``."""

LONGEST_WAIT = 7 * 86400.0
WAIT_RANGE = (MinValueValidator(0.0), MaxValueValidator(LONGEST_WAIT))


class Pool(models.Model):
    """Live settings of one pool. Jobs, counts and pauses live in Redis; a pool needs no row to work."""

    class Autoscale(models.TextChoices):
        """Whether a machine sizes the pool."""

        OFF = "off", "Off: the slots are as set above"
        DRY_RUN = "dry_run", "Dry run: decisions are recorded and not carried out"
        ON = "on", "On: the slots follow the wait"

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
        "Running workers follow within a second.",
    )
    max_running = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Jobs of this pool that run at a time on all hosts together. Empty: as many as there are slots.",
    )
    max_pending = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="With so many jobs waiting, new ones are refused. Retries and children of workflows are not.",
    )
    autoscale = models.CharField(max_length=8, choices=Autoscale.choices, default=Autoscale.OFF)
    min_slots = models.PositiveSmallIntegerField(
        default=1, validators=[MaxValueValidator(MOST_SLOTS)], help_text="Never fewer slots per worker process."
    )
    max_slots = models.PositiveSmallIntegerField(
        default=20,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_SLOTS)],
        help_text="Never more slots per worker process.",
    )
    target_wait_seconds = models.FloatField(
        default=5.0,
        validators=[MinValueValidator(0.001), MaxValueValidator(LONGEST_WAIT)],
        help_text="How long a job should wait for its start.",
    )
    tolerance_seconds = models.FloatField(
        default=1.0, validators=WAIT_RANGE, help_text="Off by no more than this, nothing is changed."
    )
    cooldown_seconds = models.FloatField(
        default=30.0, validators=WAIT_RANGE, help_text="At least so long between two changes."
    )

    operators = models.ManyToManyField(
        "auth.Group",
        blank=True,
        related_name="+",
        help_text="Only members of these groups may act in this pool, with the permissions that they have anyway. "
        "None chosen: whoever has the permission.",
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
            models.CheckConstraint(
                name="jobs_pool_bounds_in_order",
                condition=models.Q(min_slots__lte=models.F("max_slots")),
                violation_error_message="The least number of slots must not be above the most.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    def clean(self) -> None:
        for name in ("autoscale", *AutoscaleRule.__struct_fields__):
            if getattr(self, name) in (None, ""):  # a form in which it was left empty
                setattr(self, name, getattr(Pool(), name))
        if self.autoscale != self.Autoscale.OFF and (problem := self.rule.problem):
            raise ValidationError(f"Autoscaling cannot work with these numbers ({problem}).")

    @property
    def rule(self) -> AutoscaleRule:
        """By what the pool is sized when ``autoscale`` is not off."""
        return AutoscaleRule(**{name: getattr(self, name) for name in AutoscaleRule.__struct_fields__})

    @property
    def settings(self) -> dict[str, Any]:
        """What the engine is told; None where nothing was set."""
        scaled = None
        if self.autoscale != self.Autoscale.OFF:
            rule = {name: getattr(self, name) for name in AutoscaleRule.__struct_fields__}
            scaled = rule | {"dry_run": self.autoscale == self.Autoscale.DRY_RUN}
        return {
            "slots": self.slots,
            "max_running": self.max_running,
            "max_pending": self.max_pending,
            "autoscale": scaled,
        }
