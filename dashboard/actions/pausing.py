"""What a pause asks for: why, and for how long. The same for pools and for everything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms

from dashboard.actions.base import ActionForm

WAIT_SECONDS = 3.0
"""So long a page waits until what workers had taken before a pause has begun or gone back."""

SAYS = "What runs goes on; new jobs are accepted and wait. The pause survives every restart."

SPANS = {
    "": "until somebody resumes it",
    "15m": "for 15 minutes",
    "1h": "for an hour",
    "8h": "for 8 hours",
    "1d": "for a day",
}
_UNITS = {"m": 60, "h": 3_600, "d": 86_400}


class PauseForm(ActionForm):
    span = forms.ChoiceField(label="How long", choices=SPANS.items(), required=False)

    def prepare(self) -> None:
        self.fields["reason"].widget.attrs["placeholder"] = "shown wherever the pause is"


def options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The answers as arguments of a pause."""
    span = values["span"]
    until = timedelta(seconds=int(span[:-1]) * _UNITS[span[-1]]) if span else None
    return {"reason": values["reason"], "until": until, "wait": WAIT_SECONDS}
