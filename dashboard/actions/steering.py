"""What changing the course of waiting jobs asks for: where to, and how urgent."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import ActionForm
from jobs.api.reach import Reach
from jobs.core.options import HIGHEST_PRIORITY, LOWEST_PRIORITY

PRIORITY_WORDS = f"A whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}."


def priority_field() -> forms.IntegerField:
    wrong = ("required", "invalid", "min_value", "max_value")
    return forms.IntegerField(
        label="Priority",
        min_value=LOWEST_PRIORITY,
        max_value=HIGHEST_PRIORITY,
        help_text="-100 to 100; higher runs first.",
        error_messages=dict.fromkeys(wrong, PRIORITY_WORDS),
    )


def pool_field() -> forms.ChoiceField:
    return forms.ChoiceField(label="To the pool", choices=[])


def offer_pools(field: forms.Field, without: str = "") -> None:
    """The pools that there are."""
    names = sorted(pool["name"] for pool in reads.overall().pools)
    assert isinstance(field, forms.ChoiceField)
    field.choices = [("", "choose")] + [(name, name) for name in names if name != without]


def with_target(pools: Reach, given: QueryDict) -> Reach:
    """The pools that are touched, with the one that jobs are to go to."""
    to = given.get("to", "").strip()
    return pools | {to} if pools is not None and to else pools


class PriorityForm(ActionForm):
    field_order = ("priority", "reason")
    priority = priority_field()


class MoveForm(ActionForm):
    field_order = ("to", "reason")
    to = pool_field()

    def prepare(self) -> None:
        offer_pools(self.fields["to"])
