"""What people may do to a schedule, with the words for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.urls import reverse

from jobs import api


@dataclass(frozen=True)
class Verb:
    """One thing to do to a schedule. ``perform`` takes its name, who does it, and why; it answers what was done."""

    verb: str
    label: str
    sentence: str  # what it means, before it is done
    key: str  # of the keyboard, in the row of the schedule
    asks_reason: bool
    perform: Callable[[str, str, str], str]

    @property
    def url(self) -> str:
        return reverse("dashboard:schedule_act", args=[self.verb])

    @property
    def confirm_url(self) -> str:
        return reverse("dashboard:schedule_confirm", args=[self.verb])


def _run(name: str, by: str, reason: str) -> str:
    job = api.schedules.run(name, by=by)
    return f"{name} was started: job {job.id}."


def _pause(name: str, by: str, reason: str) -> str:
    api.schedules.pause(name, by=by, reason=reason)
    return f"{name} is paused."


def _resume(name: str, by: str, reason: str) -> str:
    api.schedules.resume(name, by=by)
    return f"{name} goes on."


VERBS = {
    verb.verb: verb
    for verb in (
        Verb(
            verb="run",
            label="Run now",
            sentence="One job is made at once. The rhythm does not move.",
            key="r",
            asks_reason=False,
            perform=_run,
        ),
        Verb(
            verb="pause",
            label="Pause",
            sentence="It makes no jobs until it is resumed. What would have fired meanwhile is recorded as skipped and "
            "never made up. Jobs that it has made already run on.",
            key="p",
            asks_reason=True,
            perform=_pause,
        ),
        Verb(
            verb="resume",
            label="Resume",
            sentence="It fires again from its next time on. What was due in the pause is not made up.",
            key="p",
            asks_reason=False,
            perform=_resume,
        ),
    )
}
