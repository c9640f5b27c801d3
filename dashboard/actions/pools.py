"""What people may do to a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Told, key_for
from dashboard.actions.pausing import SAYS, PauseForm, options
from dashboard.deeds import EVERY_ONE
from dashboard.formats import count, plural
from dashboard.links import bulk_url
from dashboard.overall import UNREACHABLE
from dashboard.permissions import ADMINISTER
from jobs import api
from jobs.core.bulk import WAITING, BulkAction
from jobs.core.states import JobState
from jobs.exceptions import SchedulerError

MOST_SLOTS = 1_000
MOST = 2_147_483_647
LONGEST_WAIT = 7 * 86_400.0

AUTOSCALE_DEFAULTS: dict[str, Any] = {
    "mode": "off",
    "min_slots": 1,
    "max_slots": 20,
    "target_wait_seconds": 5.0,
    "tolerance_seconds": 1.0,
    "cooldown_seconds": 30.0,
}
"""What the form offers for a pool that was never sized by a machine."""


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


class LimitForm(ActionForm):
    field_order = ("max_running", "max_pending", "reason")
    max_running = forms.IntegerField(
        label="Jobs at once, over all hosts", min_value=0, max_value=MOST, required=False, help_text="Empty: no limit."
    )
    max_pending = forms.IntegerField(
        label="Jobs that may wait",
        min_value=0,
        max_value=MOST,
        required=False,
        help_text="Beyond it new jobs are refused; retries and children of workflows are not. Empty: no limit.",
    )

    def prepare(self) -> None:
        pool = next((pool for pool in reads.overall().pools if pool["name"] in self.ids), None)
        if pool is not None:
            for name in ("max_running", "max_pending"):
                self.fields[name].initial = pool[name]
            self.now = f"Now {plural(pool['leased'], 'job')} run and {count(pool['ready'])} are ready."


class AutoscaleForm(ActionForm):
    """How a machine sizes the pool. The numbers are those of ``api.pools.autoscale``."""

    field_order = (
        "mode",
        "min_slots",
        "max_slots",
        "target_wait_seconds",
        "tolerance_seconds",
        "cooldown_seconds",
        "reason",
    )
    mode = forms.ChoiceField(
        label="Autoscaling",
        choices=(
            ("off", "off: the slots are as set by hand"),
            ("dry_run", "dry run: decisions are recorded and not carried out"),
            ("on", "on: the slots follow the wait"),
        ),
    )
    min_slots = forms.IntegerField(label="Least slots per worker process", min_value=0, max_value=MOST_SLOTS)
    max_slots = forms.IntegerField(label="Most slots per worker process", min_value=1, max_value=MOST_SLOTS)
    target_wait_seconds = forms.FloatField(
        label="Seconds that a job should wait for its start", min_value=0.001, max_value=LONGEST_WAIT
    )
    tolerance_seconds = forms.FloatField(
        label="Off by so many seconds nothing is changed", min_value=0, max_value=LONGEST_WAIT
    )
    cooldown_seconds = forms.FloatField(label="Least seconds between two changes", min_value=0, max_value=LONGEST_WAIT)

    def prepare(self) -> None:
        values = dict(AUTOSCALE_DEFAULTS)
        try:
            rule = reads.pool_settings(self.ids[0]).autoscale if self.ids else None
        except (SchedulerError, *UNREACHABLE):
            rule = None
        if rule is not None:
            values |= {name: getattr(rule, name) for name in values if name != "mode"}
            values["mode"] = "dry_run" if rule.dry_run else "on"
        for name, value in values.items():
            self.fields[name].initial = value

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        least, most = cleaned.get("min_slots"), cleaned.get("max_slots")
        if least is not None and most is not None and least > most:
            self.add_error("min_slots", "The least must not be above the most.")
        return cleaned


WHAT: dict[str, tuple[BulkAction, tuple[JobState, ...]]] = {
    "waiting": ("cancel", WAITING),
    "finished": ("discard", (JobState.SUCCEEDED, JobState.CANCELLED, JobState.SKIPPED)),
    "dead": ("discard", (JobState.DEAD,)),
}


class PurgeForm(ActionForm):
    """What goes, and the name of the pool, typed: a purge of the wrong one is a long night."""

    field_order = ("what", "typed", "reason")
    what = forms.ChoiceField(
        label="What",
        choices=(
            ("waiting", "Waiting jobs: they end as cancelled, and can be resubmitted"),
            ("finished", "Finished jobs (succeeded, cancelled, skipped): they are removed for good"),
            ("dead", "Dead jobs: they are removed for good"),
        ),
    )
    typed = forms.CharField(max_length=100, required=False)

    def prepare(self) -> None:
        name = self.ids[0] if self.ids else ""
        self.fields["typed"].label = f"Type {name} to confirm"
        pool = next((pool for pool in reads.overall().pools if pool["name"] == name), None)
        if pool is not None:
            waiting = pool["ready"] + pool["scheduled"] + pool["retry_wait"]
            self.now = f"Now {count(waiting)} wait and {count(pool['dead'])} are dead."

    def clean_typed(self) -> str:
        if self.cleaned_data["typed"].strip() != (self.ids[0] if self.ids else ""):
            raise forms.ValidationError("Nothing was done: type the name of the pool to confirm.")
        return str(self.cleaned_data["typed"])


def _purge(order: Order) -> Told:
    api.pools.get(order.id)  # of a name that is none nothing would go, and the answer would say that it does
    action, states = WHAT[order.values["what"]]
    operation = api.bulk.start(
        action,
        api.JobFilter(pool=order.id, states=states),
        confirmed=EVERY_ONE,
        id=order.key,
    )
    return Told(f"Pool {order.id} is being purged of {order.values['what']} jobs.", goto=bulk_url(operation.id))


@dataclass(frozen=True, kw_only=True)
class PurgeAction(Action):
    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        return Question(
            f"Purge pool {ids[0] if ids else ''}?",
            self.says,
            ids,
            hidden=(key_for(given),),
        )


def _pause(order: Order) -> Told:
    api.pools.pause(order.id, **options(order.values))
    return Told(f"Pool {order.id} is paused.")


def _resume(order: Order) -> Told:
    api.pools.resume(order.id)
    return Told(f"Pool {order.id} goes on.")


def _limit(order: Order) -> Told:
    limits = {name: order.values[name] for name in ("max_running", "max_pending")}
    api.pools.limit(order.id, **limits)
    running, pending = limits["max_running"], limits["max_pending"]
    words = "no limit to what runs" if running is None else f"at most {count(running)} at once"
    more = "no limit to what waits" if pending is None else f"at most {count(pending)} waiting"
    return Told(f"Pool {order.id}: {words}, {more}.")


def _autoscale(order: Order) -> Told:
    rule = {name: order.values[name] for name in AUTOSCALE_DEFAULTS}
    api.pools.autoscale(order.id, **rule)
    words = {"off": "is off", "dry_run": "decides, and changes nothing", "on": "is on"}[rule["mode"]]
    return Told(f"Autoscaling of pool {order.id} {words}.")


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
    Action(
        noun="pool",
        verb="limit",
        label="Limit",
        says="Holds over all hosts, from now on and for good. What runs goes on, also beyond a new limit.",
        perform=_limit,
        panel="pools",
        form=LimitForm,
    ),
    Action(
        noun="pool",
        verb="autoscale",
        label="Autoscale",
        says="Slots follow how long jobs wait, within the bounds. Try it with a dry run first: the pool’s page shows "
        "what it would have done, and why.",
        perform=_autoscale,
        panel="pools",
        form=AutoscaleForm,
    ),
    PurgeAction(
        noun="pool",
        verb="purge",
        label="Purge",
        says="It happens in the background, to the jobs that are there when you say so; you see how far it is, and can "
        f"stop it. What is removed for good goes only after {api.bulk.UNDO_SECONDS:.0f} seconds.",
        perform=_purge,
        panel="pools",
        permission=ADMINISTER,
        form=PurgeForm,
        final=True,
    ),
)
