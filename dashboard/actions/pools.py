"""What people may do to a pool."""

from __future__ import annotations

from django import forms

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Told
from dashboard.actions.pausing import SAYS, PauseForm, options
from dashboard.formats import plural
from jobs import api

MOST_SLOTS = 1_000


class ScaleForm(ActionForm):
    field_order = ("slots", "reason")
    slots = forms.IntegerField(
        label="Slots per worker process",
        min_value=0,
        max_value=MOST_SLOTS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), f"Slots must be a whole number from 0 to {MOST_SLOTS:,}."
        ),
    )

    def prepare(self) -> None:
        pool = next((pool for pool in reads.overall().pools if pool["name"] in self.ids), None)
        if pool is not None:
            self.fields["slots"].initial = pool["slots"]
            workers = plural(pool["workers"], "worker")
            self.now = f"Now {pool['slots']} each, {pool['slots_actual']} over {workers}."


def _pause(order: Order) -> Told:
    api.pools.pause(order.id, **options(order.values))
    return Told(f"Pool {order.id} is paused.")


def _resume(order: Order) -> Told:
    api.pools.resume(order.id)
    return Told(f"Pool {order.id} goes on.")


def _scale(order: Order) -> Told:
    slots = order.values["slots"]
    api.pools.scale(order.id, slots)
    return Told(f"Each worker process of pool {order.id} now has {plural(slots, 'slot')}.")


ACTIONS: tuple[Action, ...] = (
    Action(
        noun="pool",
        verb="pause",
        label="Pause",
        says=f"Nothing more of this pool starts. {SAYS}",
        perform=_pause,
        panel="pools",
        form=PauseForm,
        key="p",
    ),
    Action(
        noun="pool",
        verb="resume",
        label="Resume",
        says="Waiting jobs of this pool start again.",
        perform=_resume,
        panel="pools",
        key="p",
    ),
    Action(
        noun="pool",
        verb="scale",
        label="Scale",
        says="Running workers follow within a second. Fewer slots never stop a running job; 0 starts nothing new.",
        perform=_scale,
        panel="pools",
        form=ScaleForm,
    ),
)
