"""The form of a schedule in the admin: what it asks for, what it offers, and what it finds wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils import timezone

from jobs.api import restored, shown_value
from jobs.core.payload import CONTEXT_ARGUMENT
from jobs.core.redaction import MASK
from jobs.core.wording import did_you_mean
from jobs.models import JobType, Pool, Schedule, Workflow
from jobs.registry import registry

OF_KIND = {"cron": "cron", "interval": "interval_seconds", "once": "run_at"}
"""The field that each kind needs; those of the other kinds do not matter and are emptied."""

TIMING = ("kind", *OF_KIND.values(), "timezone", "jitter_seconds", "starts_at", "ends_at", "max_firings")
"""The fields that decide when it fires. While the form is filled in, only what is wrong with these is said."""


def _offers(words: str) -> dict[str, str]:
    return {"class": "vTextField", "list": words, "autocomplete": "off"}


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's takes none at run time
    """Checks what the row checks, and can be asked for a preview instead of being saved."""

    class Meta:
        model = Schedule
        fields = "__all__"  # noqa: DJ007 - the admin's fieldsets say which
        widgets = {
            "cron": forms.TextInput(attrs={"class": "vTextField", "spellcheck": "false", "autocomplete": "off"}),
            "payload": forms.Textarea(attrs={"class": "vLargeTextField", "rows": 4, "spellcheck": "false"}),
            "job_type": forms.TextInput(attrs=_offers("known-job-types")),
            "workflow": forms.TextInput(attrs=_offers("known-workflows")),
            "timezone": forms.TextInput(attrs=_offers("known-zones")),
            "pool": forms.TextInput(attrs=_offers("known-pools")),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial["payload"] = shown_value(self.instance.job_type, self.instance.payload)
        for field in self.fields.values():
            if isinstance(field, forms.SplitDateTimeField):
                field.help_text = f"{field.help_text} In {timezone.get_current_timezone_name()}.".strip()
                label_parts(field)

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
        if "payload" in cleaned:
            cleaned["payload"] = self._payload_behind(cleaned["payload"], cleaned.get("job_type"))
        return cleaned

    def _payload_behind(self, payload: Any, job_type: object) -> Any:
        """What was left masked stays as it was; of another type, or in a copy, there is nothing behind a mask."""
        if job_type == self.instance.job_type:
            payload = restored(payload, self.instance.payload)
        if MASK in str(payload):
            self.add_error("payload", f"Write the values that are hidden as {MASK}.")
        return payload

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


def label_parts(field: forms.SplitDateTimeField) -> None:
    """The admin shows a moment as two inputs under one label; each is told apart for who hears the page."""
    assert isinstance(field.widget, forms.MultiWidget)
    for part, word in zip(field.widget.widgets, ("date", "time"), strict=True):
        part.attrs["aria-label"] = f"{field.label}, {word}"


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
        "known-workflows": Workflow.objects.values_list("name", flat=True),
        "known-pools": Pool.objects.values_list("name", flat=True),
        "known-zones": sorted(available_timezones()),
    }
