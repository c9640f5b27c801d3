"""What people may do about an error, or a type, that shouts and that they know of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from django import forms
from django.http import QueryDict
from django.urls import reverse

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Refused, Told
from dashboard.formats import moment, shortened
from jobs import api
from jobs.api import MuteKind
from jobs.core import job

SPANS = {"1h": "for an hour", "8h": "for 8 hours", "1d": "for a day", "7d": "for a week", "30d": "for 30 days"}
HOURS = {"1h": 1, "8h": 8, "1d": 24, "7d": 168, "30d": 720}


class MuteForm(ActionForm):
    field_order = ("span", "reason")
    span = forms.ChoiceField(label="How long", choices=SPANS.items(), initial="1d")

    def prepare(self) -> None:
        self.fields["reason"].required = True
        self.fields["reason"].widget.attrs["placeholder"] = "shown beside it, and in the audit log"
        self.fields["reason"].error_messages["required"] = "Say why: others see it beside the error."


def _subject(id: str) -> tuple[MuteKind, str]:
    """``group:<fingerprint>`` or ``type:<name>``. Refused."""
    kind, _, subject = id.partition(":")
    if kind not in ("group", "type") or not subject:
        raise Refused("Nothing says what to mute: open it from the dead letters.")
    return cast(MuteKind, kind), subject


def _mute(order: Order) -> Told:
    kind, subject = _subject(order.id)
    span = timedelta(hours=HOURS[order.values["span"]])
    made = api.mutes.mute(kind, subject, span=span, reason=order.values["reason"])
    reads.forget_mutes()
    return Told(
        f"Muted until {moment(job.moment(made.until_ms))}: {shortened(made.words, 160)}. It stays in the lists."
    )


def _unmute(order: Order) -> Told:
    if not api.mutes.unmute(*_subject(order.id)):
        raise Refused("It is muted no more.", status=409)
    reads.forget_mutes()
    return Told("It counts again.")


@dataclass(frozen=True, kw_only=True)
class MuteAction(Action):
    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        kind, subject = _subject(ids[0] if ids else "")
        if kind == "type":
            return Question(f"{self.label} {subject}?", self.says, ids)
        address = f"{reverse('dashboard:dead')}?group={subject}"
        return Question(
            f"{self.label} this error?",
            self.says,
            ids,
            ((shortened(api.mutes.called(kind, subject), 160), "", address),),
        )


ACTIONS: tuple[Action, ...] = (
    MuteAction(
        noun="mute",
        verb="set",
        label="Mute",
        says="Its dead jobs, also new ones, count in no headline, title or mark until then, for everybody. They stay "
        "in every list, and are shown as muted.",
        perform=_mute,
        panel="dead",
        form=MuteForm,
    ),
    MuteAction(
        noun="mute",
        verb="end",
        label="Unmute",
        says="Its dead jobs count again.",
        perform=_unmute,
        panel="dead",
    ),
)
