"""The form of a schedule in the admin, and the preview that it shows while it is filled in.

The preview asks the rule that would fire, made of the fields that would be saved: it cannot say anything else than what
happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.utils import timezone

from jobs.core.payload import CONTEXT_ARGUMENT
from jobs.core.schedule import Firing, Preview, Window, preview_of, zone_named
from jobs.core.schedule.definition import Definition
from jobs.core.wording import did_you_mean
from jobs.exceptions import SchedulerError
from jobs.models import JobType, Pool, Schedule
from jobs.registry import registry

PREVIEWED = 5
"""Firings that the preview shows."""

OF_KIND = {"cron": "cron", "interval": "interval_seconds", "once": "run_at"}
"""The field that each kind needs; those of the other kinds do not matter and are emptied."""

TIMING = ("kind", *OF_KIND.values(), "timezone", "jitter_seconds", "starts_at", "ends_at", "max_firings")
"""The fields that decide when it fires. While the form is filled in, only what is wrong with these is said."""

_CALM = 5
"""So many firings in one minute are no crowd."""
_JITTERS = (60, 120, 300, 600, 900, 1800)

_MISSING = {
    "cron": "Type a cron expression to see when it fires: 30 2 * * MON-FRI",
    "interval": "Give the seconds of the interval to see when it fires.",
    "once": "Give the moment to see when it fires.",
}


def _offers(words: str) -> dict[str, str]:
    return {"class": "vTextField", "list": words, "autocomplete": "off"}


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's takes none at run time
    """Checks what the row checks, and can be asked for a preview instead of being saved."""

    class Meta:
        model = Schedule
        fields = "__all__"  # noqa: DJ007 - the admin's fieldsets say which
        widgets = {
            "cron": forms.TextInput(attrs={"class": "vTextField", "spellcheck": "false", "autocomplete": "off"}),
            "job_type": forms.TextInput(
                attrs={"class": "vTextField", "list": "known-job-types", "autocomplete": "off"}
            ),
            "timezone": forms.TextInput(attrs={"class": "vTextField", "list": "known-zones", "autocomplete": "off"}),
            "pool": forms.TextInput(attrs={"class": "vTextField", "list": "known-pools", "autocomplete": "off"}),
        }

    @property
    def only_preview(self) -> bool:
        """Whether the button "Preview" was pressed: the form is then shown again, whatever it holds."""
        return "_preview" in self.data

    def is_valid(self) -> bool:
        return super().is_valid() and not self.only_preview

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for kind, field in OF_KIND.items():
            if kind != cleaned.get("kind"):
                self.errors.pop(field, None)
                cleaned[field] = "" if field == "cron" else None
        return cleaned

    def add_error(self, field: Any, error: Any) -> None:
        """What is wrong with a field that is not on the page is said above all of them."""
        if field is None and hasattr(error, "error_dict"):
            for name, messages in error.error_dict.items():
                super().add_error(name if name in self.fields else None, messages)
        else:
            super().add_error(field, error)

    def timing_errors(self) -> dict[str, list[str]]:
        """What is wrong with the fields that decide when it fires; an empty field is not wrong yet."""
        return {
            name: [str(message) for message in self.errors[name]]
            for name in TIMING
            if name in self.errors and self[name].value() not in (None, "", [None, None], ["", ""])
        }

    @property
    def signature(self) -> str:
        """What the payload has to hold for the job type that is chosen."""
        return signature_of(str(self["job_type"].value() or ""))


@dataclass(frozen=True)
class Row:
    """One firing to come, on three clocks."""

    at: datetime
    local: str
    viewer: str
    utc: str


@dataclass(frozen=True)
class Shown:
    """The preview as the page has it. ``missing`` says what is still to be filled in where there is none."""

    zone: str = ""
    viewer_zone: str = ""
    description: str = ""
    expression: str = ""
    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    note: str = ""
    missing: str = ""

    @property
    def said(self) -> str:
        """One sentence, for who hears the page."""
        if not self.description:
            return self.missing
        first = f"Next on {self.rows[0].local} in {self.zone}." if self.rows else "It never fires."
        notes = f" {len(self.warnings)} notes." if len(self.warnings) > 1 else " One note." if self.warnings else ""
        return f"{self.description}. {first}{notes}"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a schedule besides its fields."""

    created_at: datetime | None = None
    fired: int = 0
    usual_seconds: float | None = None  # run time of its jobs
    crowd: Callable[[datetime], int] = lambda at: 0  # other schedules that fire in the minute of this moment


def shown(form: ScheduleForm, known: Known, viewer_zone: str = "") -> Shown:
    """The preview of what the form holds: of its row while it is untouched, else of what was typed."""
    errors = form.timing_errors() if form.is_bound else {}
    if errors:
        return Shown(missing=next(iter(errors.values()))[0])
    fields = _fields_of(form.instance) | (form.cleaned_data if form.is_bound else {})
    kind = fields.get("kind") or ""
    if fields.get(OF_KIND.get(kind, "")) in (None, ""):
        return Shown(missing=_MISSING.get(kind, ""))
    try:
        return _shown(_definition(fields), known, viewer_zone)
    except SchedulerError as error:
        return Shown(missing=f"{error} {error.fix}".strip())


def _shown(definition: Definition, known: Known, viewer_zone: str) -> Shown:
    now = timezone.now()
    left = None if definition.max_firings is None else max(0, definition.max_firings - known.fired)
    found = preview_of(
        definition.rule(known.created_at or now),
        definition.timezone,
        PREVIEWED,
        now,
        window=Window(starts_at=definition.starts_at, ends_at=definition.ends_at, firings_left=left),
        usual_seconds=known.usual_seconds,
    )
    viewer = _zone(viewer_zone)
    return Shown(
        zone=definition.timezone,
        viewer_zone=viewer.key if viewer is not None and viewer.key != definition.timezone else "",
        description=found.description,
        expression=found.expression,
        rows=tuple(_row(item, viewer) for item in found.items),
        warnings=(*found.warnings, *_crowded(definition, found, known)),
        note=found.note,
    )


def _crowded(definition: Definition, found: Preview, known: Known) -> Iterator[str]:
    """Others that fire in the minute of its next firing, and the jitter that would spread them."""
    if not found.items:
        return
    others = known.crowd(found.items[0].utc)
    proposal = next((seconds for seconds in _JITTERS if (others + 1) * 60 <= seconds * _CALM), _JITTERS[-1])
    if others >= _CALM and definition.jitter_seconds < proposal:
        yield (
            f"{others} other schedules fire at {found.items[0].local:%H:%M} too: "
            f"a jitter of {proposal} seconds would spread it."
        )


def _definition(fields: Mapping[str, Any]) -> Definition:
    """What the fields say about when it fires; the rest does not matter to a preview."""
    timing = {name: fields[name] for name in TIMING if fields.get(name) not in (None, "")}
    return Definition(name=fields.get("name") or "", job_type=fields.get("job_type") or "", **timing)


def _fields_of(schedule: Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in ("name", "job_type", *TIMING)}


def _row(firing: Firing, viewer: ZoneInfo | None) -> Row:
    return Row(firing.utc, _spelled(firing.local), _spelled(firing.utc.astimezone(viewer or UTC)), _spelled(firing.utc))


def _spelled(at: datetime) -> str:
    """``Mon 30 Nov 2026, 02:30``, with seconds and their thousandths only where there are any."""
    text = f"{at:%a} {at.day} {at:%b %Y, %H:%M}"
    if at.second or at.microsecond:
        text += f":{at:%S}"
    return text + (f".{at.microsecond // 1000:03d}" if at.microsecond else "")


def _zone(name: str) -> ZoneInfo | None:
    """The viewer's zone, which comes from a browser: anything else than a zone is none."""
    try:
        return zone_named(name) if name else None
    except SchedulerError:
        return None


def signature_of(type_name: str) -> str:
    """``email.send(to: str, subject: str = "")``; a sentence where this process does not have the type."""
    if not type_name:
        return ""
    if type_name not in registry:
        return did_you_mean(type_name, registry.all(), none="This process knows no job types.")
    signature = _signature(registry.get(type_name).function)
    parameters = [each for name, each in signature.parameters.items() if name != CONTEXT_ARGUMENT]
    return f"{type_name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:  # an annotation that only type checkers can resolve
        return inspect.signature(function)


def suggestions() -> dict[str, Iterable[str]]:
    """What the fields offer while they are typed in: id of the list → words."""
    return {
        "known-job-types": sorted({*registry.all(), *JobType.objects.values_list("name", flat=True)}),
        "known-pools": Pool.objects.values_list("name", flat=True),
        "known-zones": sorted(available_timezones()),
    }
