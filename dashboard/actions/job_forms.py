"""Making a job, and making a dead one run again with another payload: what is typed is checked as any enqueue is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django import forms
from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Refused, Told, key_for
from dashboard.actions.jobs import JobAction
from dashboard.filters import DURATION, UNITS
from dashboard.links import job_url
from dashboard.permissions import ADMINISTER, ENQUEUE
from jobs import api
from jobs.api.reach import Reach
from jobs.core.payload import Argument, arguments_of
from jobs.core.states import JobState
from jobs.exceptions import DuplicateJob

PAYLOAD_MAX = 300_000
"""Characters: more than any payload may hold, so that a longer one is refused by its size and not by the form."""

PREFIX = "argument-"
"""Before the name of an argument, so that none is taken for a field of the form itself."""


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise forms.ValidationError("This is nested too deeply to be read.") from None
    except ValueError as error:
        raise forms.ValidationError(f"This is no JSON: {error}.") from None


class JSONArea(forms.CharField):
    """A value as JSON, typed into a box."""

    widget = forms.Textarea({"rows": 3, "class": "mono", "spellcheck": "false"})

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=PAYLOAD_MAX, **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return _from_json(text) if text else None


class EditForm(ActionForm):
    """The payload as people may see it. What is left masked stays what it was."""

    field_order = ("payload", "reason")
    payload = JSONArea(label="Payload")

    def prepare(self) -> None:
        self.fields["payload"].widget.attrs["rows"] = 14
        if self.ids and not self.is_bound:
            found = reads.jobs_by_id(self.ids[:1])[0]
            self.fields["payload"].initial = _json(found.payload if found else {})

    def clean_payload(self) -> dict[str, Any]:
        payload = self.cleaned_data["payload"]
        if not isinstance(payload, dict):
            raise forms.ValidationError('The payload must be an object of named arguments: {"name": value, …}.')
        return payload


def _resubmit_edited(order: Order) -> Told:
    original = api.get_job(order.id)
    api.resubmit(order.id, payload=api.restored(order.values["payload"], original.payload))
    return Told("The job was resubmitted with the payload as edited.", goto=job_url(order.id))


def _field(argument: Argument) -> forms.Field:
    """The box for one argument, from its annotation and default."""
    common: dict[str, Any] = {
        "label": argument.name,
        "required": argument.required,
        "help_text": argument.annotation + ("" if argument.required else f", otherwise {_json(argument.default)}"),
    }
    match argument.kind:
        case "text":
            return forms.CharField(max_length=PAYLOAD_MAX, **common)
        case "whole":
            return forms.IntegerField(**common)
        case "number":
            return forms.FloatField(widget=forms.NumberInput({"step": "any"}), **common)
        case "flag":
            return forms.TypedChoiceField(
                choices=[("", "as by default")] * (not argument.required) + [("true", "true"), ("false", "false")],
                coerce=lambda value: value == "true",
                empty_value=None,
                **common,
            )
    return JSONArea(**common)


def _arguments(name: str) -> list[Argument] | None:
    found = api.job_types().get(name)
    return arguments_of(name, found.function) if found else None


class NewForm(ActionForm):
    """The arguments of the type that was chosen, and how the job is to run. Without a type it asks for one."""

    pool = forms.CharField(required=False, max_length=100)
    priority = forms.IntegerField(required=False, min_value=-100, max_value=100)
    delay = forms.CharField(required=False, max_length=20, help_text="90s, 5m, 2h; empty: now")
    unique_key = forms.CharField(label="Unique key", required=False, max_length=200)
    tags = forms.CharField(required=False, max_length=400, help_text="with commas between them")

    def prepare(self) -> None:
        name = self.given.get("type", "")
        self.arguments = _arguments(name)
        if self.arguments is None:
            self.fields = {"type": forms.ChoiceField(label="Type", choices=[(n, n) for n in sorted(api.job_types())])}
            self.fields["reason"] = forms.CharField(required=False, widget=forms.HiddenInput())
            return
        chosen = api.job_types()[name]
        boxes = {PREFIX + argument.name: _field(argument) for argument in self.arguments}
        self.fields = {**boxes, **self.fields}
        self.fields["pool"].widget.attrs["placeholder"] = chosen.pool
        self.fields["priority"].widget.attrs["placeholder"] = str(chosen.priority)

    def clean_delay(self) -> float | None:
        text = self.cleaned_data["delay"].replace(" ", "")
        found = DURATION.fullmatch(text)
        if text and not found:
            raise forms.ValidationError("Write for example 90s, 5m, 2h or 7d.")
        return timedelta(**{UNITS[found[2]]: int(found[1])}).total_seconds() if found else None

    @property
    def payload(self) -> dict[str, Any]:
        """Arguments that were left empty are left out: the function's defaults hold."""
        given = {
            name.removeprefix(PREFIX): value for name, value in self.cleaned_data.items() if name.startswith(PREFIX)
        }
        required = {argument.name for argument in self.arguments or () if argument.required}
        return {name: value for name, value in given.items() if value not in (None, "") or name in required}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.arguments is not None and not self.errors:
            return {**cleaned, "payload": self.payload}
        return cleaned


def _enqueue(order: Order) -> Told:
    values = order.values
    if "payload" not in values:
        raise Refused("Choose the type of the job first.")
    options: dict[str, Any] = {
        "pool": values["pool"] or None,
        "priority": values["priority"],
        "delay": values["delay"],
        "unique_key": values["unique_key"] or None,
        "tags": [tag.strip() for tag in values["tags"].split(",") if tag.strip()] or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    type_name = order.given.get("type", "")
    job_id = order.id_for(type_name, values["payload"], given)
    try:
        handle = api.enqueue(type_name, values["payload"], **given, id=job_id)
    except DuplicateJob:
        return Told("The job had been made already: this is it.", goto=job_url(str(job_id)))
    # What was typed beside the payload may repeat what that hides: the page of the job shows it masked.
    told = {name: value for name, value in given.items() if name not in ("unique_key", "tags")}
    api.audit.record("job.enqueue", handle.id, after={"type": type_name, **told})
    text = "A job of this unique key is live already: this is it." if handle.existing else "The job was made."
    return Told(text, goto=job_url(handle.id))


class NewAction(Action):
    def reach(self, ids: tuple[str, ...], given: QueryDict) -> Reach:
        name = given.get("type", "")
        pool = given.get("pool", "").strip() or None  # as its form reads it
        return api.reach.of_enqueue(name, pool) if pool or name in api.job_types() else frozenset()

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        name = given.get("type", "")
        type = api.job_types().get(name)
        if type is None:
            return Question("New job", "Choose what it is to run.", (), chooses=True)
        says = (type.__doc__ or "").strip().partition("\n")[0]
        return Question(f"New job: {name}", says or self.says, (), hidden=(("type", name), key_for(given)))


ACTIONS: tuple[Action, ...] = (
    JobAction(
        noun="job",
        verb="edit",
        label="Edit payload, then resubmit",
        says="It runs again under its id, attempts counted anew. The payload that it had stays in the audit log.",
        perform=_resubmit_edited,
        panel="jobs",
        permission=ADMINISTER,
        form=EditForm,
        states=frozenset({JobState.DEAD, JobState.CANCELLED}),
        doing="Resubmitting…",
        done="resubmitted",
    ),
    NewAction(
        noun="job",
        verb="new",
        label="Make the job",
        says="It is checked against the signature of its type before it is made.",
        perform=_enqueue,
        panel="jobs",
        permission=ENQUEUE,
        form=NewForm,
    ),
)
