"""A job type as people know it: what the code declares, and what is overridden while the system runs."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from jobs.models.by_name import ByName
from jobs.models.pool import pool_name

OVERRIDABLE = ("pool", "priority", "max_retries", "timeout")
"""The options of ``@job`` that a row may override; their field names here are the same."""

LONGEST_TIMEOUT = 7 * 86400
MOST_RETRIES = 1000


class JobType(models.Model):
    """One row for each registered function. An empty override means: as declared in the code.

    The first half is copied from the registry (``jobs.services.reconciler.register``) and not for editing; a type that
    the code no longer has keeps its row, with ``registered`` false, until somebody deletes it.
    """

    name = models.CharField(max_length=200, unique=True, editable=False)
    function = models.CharField(max_length=255, blank=True, editable=False, help_text="Where the code lives.")
    description = models.TextField(blank=True, editable=False, help_text="The function's docstring.")
    declared = models.JSONField(default=dict, editable=False, help_text="The defaults given to @job.")
    registered = models.BooleanField(default=True, editable=False, help_text="Whether the code still has this type.")
    last_seen = models.DateTimeField(null=True, editable=False, help_text="When the code was last seen to have it.")

    enabled = models.BooleanField(
        default=True,
        help_text="A disabled type's jobs are accepted and kept; none is started until it is enabled again.",
    )
    pool = models.CharField(
        max_length=64,
        blank=True,
        validators=[pool_name],
        help_text="For jobs enqueued from now on. Empty: as declared.",
    )
    priority = models.SmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-100), MaxValueValidator(100)],
        help_text="-100 to 100, higher first, for jobs enqueued from now on. Empty: as declared.",
    )
    max_retries = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_RETRIES)],
        help_text="Retries after a failure, for jobs enqueued from now on; 0 means none. Empty: as declared.",
    )
    timeout = models.FloatField(
        "time-out",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(LONGEST_TIMEOUT)],
        help_text="Seconds that one attempt may take, for jobs enqueued from now on. Empty: as declared.",
    )

    objects = ByName["JobType"]()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="jobs_jobtype_priority_in_range",
                condition=models.Q(priority__isnull=True) | models.Q(priority__range=(-100, 100)),
                violation_error_message="Priority must be from -100 to 100, or empty.",
            ),
            models.CheckConstraint(
                name="jobs_jobtype_timeout_in_range",
                condition=models.Q(timeout__isnull=True) | models.Q(timeout__gt=0, timeout__lte=LONGEST_TIMEOUT),
                violation_error_message="The time-out must be more than 0 and at most seven days, or empty.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    @property
    def overrides(self) -> dict[str, Any]:
        """What the engine is told: every option, None where the code's own value holds."""
        return {option: self.override(option) for option in OVERRIDABLE} | {"enabled": self.enabled}

    @property
    def is_overridden(self) -> bool:
        """Whether anything differs from what the code declares."""
        return not self.enabled or any(self.override(option) is not None for option in OVERRIDABLE)

    def override(self, option: str) -> Any:
        """The override of one option, or None."""
        value = getattr(self, option)
        return None if value == "" else value

    def effective(self, option: str) -> Any:
        """What a job enqueued now would get without ``using()``."""
        override = self.override(option)
        return self.declared.get(option) if override is None else override
