"""A schedule as people know it: the rule, what it starts, and what is done when something is in the way.

The row is the definition. Redis holds a copy that fires (``jobs.services.definitions`` carries it there), so whatever
writes a row - admin, ORM, fixture, SQL - changes the schedule within seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils import timezone as clock

from jobs.core.job import iso
from jobs.core.schedule import Rule
from jobs.core.schedule.definition import (
    FIELDS,
    LONGEST_JITTER,
    LONGEST_NAME,
    MOST_FIRINGS,
    MOST_MISSED,
    Definition,
    Stored,
    definition_of,
    problems,
    taken_as_it_is,
)
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import ScheduleInvalid, SchedulerError
from jobs.models.by_name import ByName
from jobs.models.job_type import LONGEST_TIMEOUT, MOST_RETRIES
from jobs.models.pool import pool_name
from jobs.models.workflow import LONGEST_NAME as LONGEST_WORKFLOW
from jobs.models.workflow import Workflow
from jobs.registry import registry

MOST_PAUSES = 50
"""Pauses that are over and remembered: what was due in one is not made up, even if nobody looked in between."""


def default_timezone() -> str:
    """The project's ``TIME_ZONE``."""
    return settings.TIME_ZONE


class ScheduleRows(models.QuerySet["Schedule"]):
    """Stamps bulk updates too, so that they are seen without a look at every row."""

    def update(self, **values: Any) -> int:
        if values.keys().isdisjoint(NO_CHANGE):
            values = {"changed_at": clock.now(), "version": models.F("version") + 1} | values
        return super().update(**values)


class Schedules(ByName["Schedule"]):
    """Rows by name."""

    def get_queryset(self) -> ScheduleRows:
        return ScheduleRows(self.model, using=self._db)


class Schedule(models.Model):
    """One rule. The first fields are those of ``jobs.core.schedule.definition.Definition``, by the same names.

    ``save`` checks everything, counts up ``version`` and writes a ``ScheduleChange`` where the definition or the pause
    changed; set ``changed_by`` before it. Rows of ``owner`` "code" belong to a declaration in the code.
    """

    class Kind(models.TextChoices):
        CRON = "cron", "cron expression"
        INTERVAL = "interval", "interval"
        ONCE = "once", "once"

    class Missed(models.TextChoices):
        SKIP = "skip", "skip them"
        RUN_ONCE = "run_once", "run once, for the latest"
        RUN_ALL = "run_all", "run all of them"

    class Overlap(models.TextChoices):
        ALLOW = "allow", "run side by side"
        SKIP = "skip", "skip the new one"
        QUEUE_ONE = "queue_one", "let one wait until the old one has ended"
        CANCEL_OLD = "cancel_old", "cancel the old one"

    class Owner(models.TextChoices):
        ADMIN = "admin", "people"
        CODE = "code", "the code"

    name = models.CharField(
        max_length=LONGEST_NAME,
        unique=True,
        help_text="Jobs, commands and records refer to the schedule by this name; it cannot be changed later.",
    )
    job_type = models.CharField(
        max_length=200, blank=True, help_text="The job type that is started. Empty: a workflow is."
    )
    workflow = models.CharField(
        max_length=LONGEST_WORKFLOW, blank=True, help_text="The stored workflow that is started, in its newest version."
    )
    payload = models.JSONField(
        default=dict, blank=True, help_text="The arguments of each job, or the payload of each run, as a JSON object."
    )
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.CRON)
    cron = models.CharField(
        "cron expression",
        max_length=255,
        blank=True,
        help_text="Minute, hour, day, month, weekday, such as 30 2 * * MON-FRI; with six fields, seconds come first.",
    )
    interval_seconds = models.FloatField(
        "interval", null=True, blank=True, help_text="Seconds of real time between two firings."
    )
    run_at = models.DateTimeField(null=True, blank=True, help_text="The moment of a schedule that fires once.")
    timezone = models.CharField(
        "time zone",
        max_length=64,
        default=default_timezone,
        help_text="Whose clock on the wall the expression means, such as Europe/Paris.",
    )

    pool = models.CharField(
        max_length=64, blank=True, validators=[pool_name], help_text="Empty: as the job type has it."
    )
    priority = models.SmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-100), MaxValueValidator(100)],
        help_text="-100 to 100, higher first. Empty: as the job type has it.",
    )
    max_retries = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_RETRIES)],
        help_text="Retries after a failure. Empty: as the job type has it.",
    )
    timeout = models.FloatField(
        "time-out",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(LONGEST_TIMEOUT)],
        help_text="Seconds that one attempt may take. Empty: as the job type has it.",
    )

    enabled = models.BooleanField(
        default=True, help_text="A disabled schedule has no firings; a paused one records them as skipped."
    )
    starts_at = models.DateTimeField(
        null=True, blank=True, help_text="Nothing fires before. An interval is counted from here."
    )
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Nothing fires from then on.")
    max_firings = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_FIRINGS)],
        help_text="After as many firings it is over. Empty: no limit.",
    )
    jitter_seconds = models.FloatField(
        "jitter",
        default=0.0,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(LONGEST_JITTER)],
        help_text="Each firing starts up to as many seconds late, always the same for the same firing.",
    )
    missed = models.CharField(
        "missed runs",
        max_length=8,
        choices=Missed.choices,
        default=Missed.SKIP,
        help_text="What becomes of firings that were due while nobody could fire them.",
    )
    missed_limit = models.PositiveIntegerField(
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_MISSED)],
        help_text="Of all missed runs, at most so many of the latest.",
    )
    grace_seconds = models.FloatField(
        "grace",
        default=5.0,
        validators=[MinValueValidator(0)],
        help_text="A firing that is later by more than this is a missed one.",
    )
    overlap = models.CharField(
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.ALLOW,
        help_text="What happens when the job before has not ended yet.",
    )

    owner = models.CharField(max_length=5, choices=Owner.choices, default=Owner.ADMIN, editable=False)
    declared_at = models.DateTimeField(null=True, editable=False, help_text="When the code was last seen to have it.")
    paused_at = models.DateTimeField(null=True, editable=False)
    paused_by = models.CharField(max_length=150, blank=True, editable=False)
    paused_reason = models.CharField(max_length=200, blank=True, editable=False)
    pauses = models.JSONField(
        default=list, blank=True, editable=False, help_text="Begin and end of pauses that are over, oldest first."
    )

    version = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    changed_at = models.DateTimeField(default=clock.now, editable=False, db_index=True)
    changed_by = models.CharField(max_length=150, blank=True, editable=False)

    error = models.TextField(blank=True, editable=False, help_text="Why it does not fire, or did not at the last time.")
    last_fired_at = models.DateTimeField(
        null=True, editable=False, db_index=True, help_text="The latest nominal time that was dealt with."
    )
    firings = models.PositiveIntegerField(default=0, editable=False, help_text="How often it has fired.")

    objects = Schedules()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Checks, stamps, saves, and writes down the change, in one transaction. Raises ValidationError."""
        self.full_clean()
        if kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], *STAMPED, "cron"}
        with transaction.atomic(using=kwargs.get("using")):
            before = self._before(kwargs.get("using"))
            after = self.snapshot()
            if before != after:
                self.version, self.changed_at = self.version + 1, clock.now()
            super().save(*args, **kwargs)
            if before != after:
                self.changes.create(
                    name=self.name,
                    version=self.version,
                    at=self.changed_at,
                    by=self.changed_by,
                    action=_action(before, after),
                    snapshot=after,
                )

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    # --- what it means ------------------------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of its definition, as they stand here."""
        return {name: getattr(self, name) for name in FIELDS}

    @property
    def target(self) -> str:
        """What it starts, in words."""
        return f"workflow {self.workflow}" if self.workflow else self.job_type

    def definition(self) -> Definition:
        """What it is. Raises SchedulerError where the row cannot be a schedule."""
        return definition_of(self.fields)

    def rule(self) -> Rule:
        """When it fires, without start and end. Raises SchedulerError where the row cannot be a schedule."""
        return self.definition().rule(self.created_at)

    def stored(self) -> Stored:
        """The form in which the engine gets it. Raises SchedulerError where the row cannot be a schedule."""
        return self._stored(self.definition())

    def unchecked(self) -> Stored:
        """The same without a check: where it is what the engine has, it was checked. Raises msgspec.ValidationError."""
        return self._stored(taken_as_it_is(self.fields))

    def _stored(self, definition: Definition) -> Stored:
        return Stored(
            definition=definition,
            created_at=self.created_at.astimezone(UTC),
            version=self.version,
            paused=self.is_paused,
            pauses=tuple((datetime.fromisoformat(began), datetime.fromisoformat(end)) for began, end in self.pauses),
        )

    # --- changing it --------------------------------------------------------------------------------------------------

    def pause(self, *, by: str, reason: str = "", at: datetime | None = None) -> None:
        """Firings are recorded as skipped from now on. To be saved."""
        self.paused_at = self.paused_at or at or clock.now()
        self.paused_by, self.paused_reason, self.changed_by = by, reason, by

    def resume(self, *, by: str, at: datetime | None = None) -> None:
        """Ends the pause. Nothing that was due in it is made up. To be saved."""
        if self.paused_at is not None:
            over = [self.paused_at.astimezone(UTC).isoformat(), (at or clock.now()).astimezone(UTC).isoformat()]
            self.pauses = [*self.pauses, over][-MOST_PAUSES:]
        self.paused_at, self.paused_by, self.paused_reason, self.changed_by = None, "", "", by

    def clean(self) -> None:
        """Everything that one parse of the rule, the registry and the signature of the job type can tell."""
        found: dict[str, SchedulerError] = problems(self.fields)
        if not {"job_type", "workflow"} & found.keys():
            found |= target_problems(self.fields)
        if found:
            raise ValidationError({_place(name): sentences(error) for name, error in found.items()})
        if self.cron:
            self.cron = self.definition().cron

    def _before(self, using: str | None) -> dict[str, Any] | None:
        if self._state.adding:
            return None
        row = Schedule.objects.using(using).select_for_update().filter(pk=self.pk).first()
        if row is None:
            return None
        self.version = row.version  # another may have saved since this one was read
        return row.snapshot()

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a schedule: its definition, then what is known of the row."""
        paused = {"by": self.paused_by, "at": iso(self.paused_at), "reason": self.paused_reason}
        return {
            **{name: _as_json(getattr(self, name)) for name in FIELDS},
            "owner": str(self.owner),
            "paused": paused if self.is_paused else None,
            "version": self.version,
            "created_at": iso(self.created_at),
            "changed_at": iso(self.changed_at),
            "changed_by": self.changed_by,
            "firings": self.firings,
            "error": self.error,
        }

    def snapshot(self) -> dict[str, Any]:
        """The definition and the pause as JSON, for the history."""
        fields = {name: _as_json(getattr(self, name)) for name in FIELDS}
        return {**fields, "paused": self.is_paused, "paused_reason": self.paused_reason}


NO_CHANGE = frozenset({"error", "last_fired_at", "firings", "declared_at", "changed_at"})
"""Fields that firing itself writes: none of them changes what a schedule is."""

STAMPED = ("version", "changed_at", "changed_by")


def target_problems(fields: Mapping[str, Any]) -> dict[str, SchedulerError]:
    """What is wrong with what a schedule starts, by field: there is none of the name, or it takes other arguments."""
    name, payload = fields.get("workflow"), fields.get("payload") or {}
    if name:
        if Workflow.objects.filter(name=name).exists():
            return {}
        known = Workflow.objects.values_list("name", flat=True)[:1000]
        fix = did_you_mean(name, known, none="None is stored.")
        return {"workflow": ScheduleInvalid(f"There is no stored workflow {shown(name)}.", fix=fix)}
    try:
        job_type = registry.get(str(fields.get("job_type")))
    except SchedulerError as error:
        return {"job_type": error}
    try:
        job_type.encode(payload)
    except SchedulerError as error:
        return {"payload": error}
    return {}


def sentences(error: SchedulerError) -> str:
    """What is wrong and what to write instead."""
    return " ".join(part for part in (_ended(str(error)), error.fix) if part)


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _place(name: str) -> str:
    return name if name in FIELDS else NON_FIELD_ERRORS


def _action(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    if before is None:
        return "created"
    if before["paused"] != after["paused"]:
        return "paused" if after["paused"] else "resumed"
    return "changed"


def _as_json(value: Any) -> Any:
    return iso(value) if isinstance(value, datetime) else str(value) if isinstance(value, str) else value
