"""What people may do to a run of a workflow and to the nodes that wait in it, and starting one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Refused, Told, key_for
from dashboard.actions.pausing import WAIT_SECONDS
from dashboard.formats import plural
from dashboard.links import run_url
from dashboard.overall import UNREACHABLE
from dashboard.permissions import ENQUEUE, VIEW
from dashboard.workflows.words import named
from jobs import api
from jobs.api.reach import Reach
from jobs.core.workflow import RunFacts
from jobs.exceptions import RunNotFound


class PayloadForm(ActionForm):
    """With a value as JSON."""

    payload = forms.CharField(
        label="Payload, as JSON",
        required=False,
        widget=forms.Textarea({"rows": 4, "spellcheck": "false", "class": "mono"}),
    )
    field_order: Iterable[str] | None = ("payload", "reason")

    def clean_payload(self) -> Any:
        text = self.cleaned_data["payload"].strip()
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is no JSON: {error}.") from None


class SignalForm(PayloadForm):
    """``name``: of the signal; the first that a node waits for stands there already."""

    name = forms.CharField(label="Signal", max_length=200)
    field_order = ("name", "payload", "reason")

    def prepare(self) -> None:
        waiting = [each.what for run_id in self.ids[:1] for each in _waiting(run_id) if each.kind == "signal"]
        self.fields["name"].initial = waiting[0] if waiting else ""


class SkipForm(PayloadForm):
    """``payload``: what the children of the node find as its result."""

    def prepare(self) -> None:
        self.fields["payload"].label = "Result for the nodes after it, as JSON"


class StartForm(PayloadForm):
    def clean_payload(self) -> Any:
        value = super().clean_payload()
        if value is not None and not isinstance(value, dict):
            raise forms.ValidationError('The payload of a run is an object: {"day": "2026-01-01"}.')
        return value


@dataclass(frozen=True, kw_only=True)
class RunAction(Action):
    """Done to one run; its pools are those of its nodes."""

    noun: str = "run"
    panel: str = "workflows"

    def pools_of(self, ids: tuple[str, ...]) -> Reach:
        return reads.reach_of_runs(ids)


class StartAction(Action):
    """Done to stored workflows."""

    def pools_of(self, ids: tuple[str, ...]) -> Reach:
        return api.reach.together(map(api.reach.of_workflow, ids))

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        return replace(super().question(ids, given), hidden=(key_for(given),))


@dataclass(frozen=True, kw_only=True)
class NodeAction(RunAction):
    """Done to one node of a run, which comes as ``node`` with the request."""

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        node = given.get("node", "")[:300]
        return Question(f"{self.label} {node}?", self.says, ids, detail=_asked(ids, node), hidden=(("node", node),))


@dataclass(frozen=True, kw_only=True)
class RetryAction(RunAction):
    """Says first what would run again."""

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        node = given.get("node", "")[:300]
        plan = api.workflows.retry_plan(ids[0] if ids else "", node or None)
        later = f" {plural(len(plan.waiting), 'node')} after them: {named(plan.waiting)}." if plan.waiting else ""
        return Question(
            f"Run {plural(len(plan.again), 'node')} again?",
            self.says,
            ids,
            detail=f"{named(plan.again)} at once.{later}",
            hidden=(("node", node),),
        )


def _asked(ids: tuple[str, ...], node: str) -> str:
    """The question of an approval."""
    return next((each.what for run_id in ids[:1] for each in _waiting(run_id) if each.key == node), "")


def _waiting(run_id: str) -> list[Any]:
    try:
        return list(reads.run_waiting(run_id))
    except (RunNotFound, *UNREACHABLE):
        return []


def _cancel(order: Order) -> Told:
    run = api.workflows.cancel(order.id, reason=order.values["reason"], by=order.by)
    return Told(f"{run.name} is cancelled." if run.is_over else f"{run.name} is being cancelled.")


def _pause(order: Order) -> Told:
    run = api.workflows.pause(order.id, reason=order.values["reason"], by=order.by, wait=WAIT_SECONDS)
    return Told(f"{run.name} is paused.")


def _resume(order: Order) -> Told:
    return Told(f"{api.workflows.resume(order.id).name} goes on.")


def _retry(order: Order) -> Told:
    node = order.given.get("node", "")[:300]
    run = api.workflows.retry(order.id, node or None)
    return Told(f"{run.name} runs again{f' from {node}' if node else ''}.")


def _signal(order: Order) -> Told:
    name = order.values["name"]
    ended = api.workflows.signal(order.id, name, order.values["payload"])
    waited = f"{plural(ended, 'node')} waited for it." if ended else "No node waits for it yet; it is kept."
    return Told(f"Signal {name} was sent. {waited}")


def _skip(order: Order) -> Told:
    node = order.given.get("node", "")[:300]
    values = order.values
    api.workflows.skip(order.id, node, result=values["payload"], reason=values["reason"], by=order.by)
    return Told(f"{node} was skipped: it counts as succeeded.")


def _decide(decide: Callable[..., RunFacts], word: str, order: Order) -> Told:
    """Approves or rejects, if who asks holds the permission that the node names."""
    node = order.given.get("node", "")[:300]
    permission = api.workflows.permission_to_decide(order.id, node)
    if not order.may(permission):
        raise Refused(f"Deciding {node} takes the permission {permission}.", status=403)
    decide(order.id, node, by=order.by, comment=order.values["reason"])
    return Told(f"{node} was {word}.")


def _approve(order: Order) -> Told:
    return _decide(api.workflows.approve, "approved", order)


def _reject(order: Order) -> Told:
    return _decide(api.workflows.reject, "rejected", order)


def _start(order: Order) -> Told:
    payload = order.values["payload"]
    if run_id := order.id_for(order.id, payload):
        with suppress(RunNotFound):
            return Told("The run had been started already: this is it.", goto=run_url(reads.run(run_id).id))
    run = api.workflows.start(order.id, payload, id=run_id, started_by=order.by)
    return Told(f"{run.name} was started.", goto=run_url(run.id))


ACTIONS: tuple[Action, ...] = (
    RetryAction(
        verb="retry",
        label="Retry",
        says="What has succeeded before them stays as it is.",
        perform=_retry,
        key="r",
    ),
    RunAction(
        verb="cancel",
        label="Cancel",
        says="What waits never starts, running jobs are asked to stop, nodes that are marked always still run. "
        "A cancelled run can be retried.",
        perform=_cancel,
        key="c",
    ),
    RunAction(
        verb="pause",
        label="Pause",
        says="Nothing of it starts until it is resumed, retries included. What runs goes on.",
        perform=_pause,
        key="p",
    ),
    RunAction(verb="resume", label="Resume", says="Nodes are released again.", perform=_resume, key="p"),
    RunAction(
        verb="signal",
        label="Signal",
        says="Nodes that wait for this signal end, with the payload as their result. It is kept for those that come to "
        "wait for it later.",
        perform=_signal,
        form=SignalForm,
    ),
    NodeAction(
        verb="skip",
        label="Skip",
        says="The node counts as succeeded without running, and what comes after it goes on. If it runs, it is asked "
        "to stop. Your name and reason stand beside it.",
        perform=_skip,
        form=SkipForm,
    ),
    NodeAction(
        verb="approve",
        label="Approve",
        says="The run goes on with the nodes that wait for a yes. Your name stands in the result.",
        perform=_approve,
        permission=VIEW,
    ),
    NodeAction(
        verb="reject",
        label="Reject",
        says="The node counts as failed. Your name and reason stand in its error.",
        perform=_reject,
        permission=VIEW,
    ),
    StartAction(
        noun="workflow",
        verb="start",
        label="Start",
        says="A run begins, with the version that is stored now.",
        perform=_start,
        panel="workflows",
        permission=ENQUEUE,
        form=StartForm,
    ),
)
"""In the order in which their buttons stand."""
