"""What people may do to the whole system."""

from __future__ import annotations

from dashboard.actions.base import Action, Order, Told
from dashboard.actions.pausing import SAYS, PauseForm, options
from jobs import api


def _pause(order: Order) -> Told:
    api.scheduler.pause(**options(order.values))
    return Told("Everything is paused.")


def _resume(_: Order) -> Told:
    api.scheduler.resume()
    return Told("Everything goes on, save pools and types that were paused by themselves.")


ACTIONS: tuple[Action, ...] = (
    Action(
        noun="scheduler",
        verb="pause",
        label="Pause",
        says=f"Nothing more starts, anywhere. {SAYS}",
        perform=_pause,
        panel="pools",
        form=PauseForm,
    ),
    Action(
        noun="scheduler",
        verb="resume",
        label="Resume",
        says="Waiting jobs start again, except in pools that are paused.",
        perform=_resume,
        panel="pools",
    ),
)
