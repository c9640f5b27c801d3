"""What people may do to all jobs that match a filter, as they were when it was asked: a bulk operation.

The question says exactly how many they are, where that can be counted while a person waits; else they are counted in
the background, and nothing is done before their number has been confirmed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, get_args

from django import forms
from django.http import QueryDict

from dashboard import reads
from dashboard.actions.base import Action, ActionForm, Order, Question, Refused, Told, key_for
from dashboard.actions.jobs import BY_VERB
from dashboard.actions.steering import offer_pools, pool_field, priority_field, with_target
from dashboard.filters import Filters
from dashboard.formats import exactly, moment, plural, read_moment
from dashboard.links import bulk_url
from dashboard.permissions import may, may_reach
from dashboard.standing import pause_of
from jobs import api
from jobs.api import JobFilter
from jobs.api.reach import Reach
from jobs.core.bulk import ALLOWED, USUAL, BulkAction
from jobs.core.states import JobState

COUNT_SECONDS = 1.0
"""So long a person waits for the number."""

POOLS_LOOKED_AT = 200
"""Of so many jobs of one error it is found out in which pools they are."""

TYPED_ABOVE = 1000
"""A larger number is typed to be confirmed."""


def number_of(text: str | None) -> int:
    """``4,812`` → 4812; anything else → 0."""
    text = (text or "").replace(",", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0


class NumberForm(ActionForm):
    """Asks that a large number is typed. ``number`` comes hidden from the question."""

    typed = forms.CharField(required=False, max_length=20, widget=forms.TextInput({"inputmode": "numeric"}))

    def prepare(self) -> None:
        self.number = number_of(self.given.get("number"))
        if self.number > TYPED_ABOVE:
            self.fields["typed"].label = f"Type {self.number:,} to confirm"
        else:
            del self.fields["typed"]

    def clean_typed(self) -> str:
        if number_of(self.cleaned_data["typed"]) != self.number:
            raise forms.ValidationError(f"Nothing was done: type {self.number:,} to confirm.")
        return str(self.number)


class MatchingForm(NumberForm):
    field_order: tuple[str, ...] = ("typed", "rate", "trial", "reason")
    rate = forms.FloatField(
        label="At most so many a second",
        required=False,
        min_value=0.01,
        max_value=100_000,
        widget=forms.NumberInput({"placeholder": "no limit", "step": "any"}),
    )
    trial = forms.IntegerField(
        label="Try so many first, then ask again",
        required=False,
        min_value=1,
        max_value=1_000,
        widget=forms.NumberInput({"placeholder": "none"}),
    )


class MatchingPriorityForm(MatchingForm):
    field_order = ("priority", "typed", "rate", "trial", "reason")
    priority = priority_field()


class MatchingMoveForm(MatchingForm):
    field_order = ("to", "typed", "rate", "trial", "reason")
    to = pool_field()

    def prepare(self) -> None:
        super().prepare()
        offer_pools(self.fields["to"], without=self.given.get("pool", ""))


FORMS: dict[BulkAction, type[MatchingForm]] = {"move": MatchingMoveForm, "prioritize": MatchingPriorityForm}
"""Of verbs that ask for more than how fast."""


@dataclass(frozen=True, kw_only=True)
class MatchingAction(Action):
    """One verb for all jobs that match. ``states``: where it makes sense."""

    states: frozenset[JobState]

    def reach(self, ids: tuple[str, ...], given: QueryDict) -> Reach:
        return with_target(_pools(Filters.read(given)), given)

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        filters, selection = read(self, given, reads.overall().now)
        if not selection.states:
            return Question(f"{self.label}?", "", (), number=0, nothing_left=self._cannot(filters))
        number, exact = reads.count_within(selection, COUNT_SECONDS)
        pool = _one_pool(filters, selection) if self.bulk == "resubmit" else None
        return Question(
            f"{self.label} {_how_many(number, exact)}?",
            self.says
            if exact
            else f"{self.says} They are counted first, which takes a while; then you are asked again.",
            (),
            number=number,
            button="" if exact else "Count them first",
            pool=pool["name"] if pool and not pause_of(pool) else "",
            detail=f"{_held(pool)}All that match {filters.words or 'no filter'} as of {moment(selection.until)}. What "
            "arrives later is not touched, and neither is one that lives on and ends again.",
            hidden=(
                *filters.pairs,
                ("until", selection.until.isoformat() if selection.until else ""),
                ("number", str(number if exact else 0)),
                key_for(given),
            ),
            nothing_left=f"Nothing is left to {self.label.lower()}: somebody was faster, or the jobs have moved on."
            if exact
            else "",
        )

    def _cannot(self, filters: Filters) -> str:
        return f"Jobs that are {' or '.join(filters.states)} cannot be {api.bulk.DONE[self.bulk]}."

    @property
    def bulk(self) -> BulkAction:
        return next(verb for verb in get_args(BulkAction) if verb == self.verb)


def _how_many(number: int, exact: bool) -> str:
    """``4,812 jobs``; as far as they were counted while a person waits ``more than 12,000 jobs``."""
    if exact:
        return exactly(number, "job")
    return f"more than {plural(number, 'job')}" if number else "all jobs that match"


def _one_pool(filters: Filters, selection: JobFilter) -> dict[str, Any] | None:
    """The pool that all of the selection are in, as it stands; None where they are in several, or that is not known."""
    holding = [
        pool
        for pool in reads.overall().pools
        if filters.pool in ("", pool["name"]) and any(pool[state] for state in selection.states)
    ]
    if len(holding) > 1 and filters.group:
        found = reads.error_groups(selection, POOLS_LOOKED_AT)
        names = {name for group in found.groups for name in group.pools} if found.is_whole else set()
        holding = [pool for pool in holding if pool["name"] in names]
    return holding[0] if len(holding) == 1 else None


def _held(pool: dict[str, Any] | None) -> str:
    return f"Pool {pool['name']} is paused: there they wait until it goes on. " if pool and pause_of(pool) else ""


def read(action: MatchingAction, given: QueryDict, now: Any) -> tuple[Filters, JobFilter]:
    """The filter, and the selection frozen at ``until``; without states where the action suits none of the filter's.

    Refused for a word that cannot be used: without it more jobs would match than somebody meant.
    """
    filters = Filters.read(given)
    if filters.problems:
        raise Refused(f"Nothing was done: {' '.join(filters.problems)}")
    until = read_moment(given.get("until", "")[:40]) or now
    wanted = filters.states or tuple(str(state) for state in USUAL[action.bulk])
    fits = all(JobState(state) in action.states for state in wanted)
    return filters, filters.with_states(*(wanted if fits else ())).selection(until, until)


def _perform(verb: BulkAction, order: Order) -> Told:
    action = BY_BULK[verb]
    if read_moment(order.given.get("until", "")[:40]) is None:
        raise Refused("This selection cannot be used. Open the list and choose again.")
    filters, selection = read(action, order.given, None)
    if not selection.states:
        raise Refused(action._cannot(filters), status=409)
    operation = api.bulk.start(
        verb,
        selection,
        confirmed=number_of(order.given.get("number")),
        rate=order.values["rate"],
        trial=order.values["trial"] or 0,
        id=order.key,
        pool=order.values.get("to"),
        priority=order.values.get("priority"),
    )
    return Told(f"{BY_VERB[verb].label} has been asked for.", goto=bulk_url(operation.id))


def _action(verb: BulkAction) -> MatchingAction:
    one = BY_VERB[verb]
    return MatchingAction(
        noun="matching",
        verb=verb,
        label=f"{one.label}{one.of}",
        says=SAYS[verb],
        perform=functools.partial(_perform, verb),
        panel="jobs",
        permission=one.permission,
        form=FORMS.get(verb, MatchingForm),
        final=one.final,
        states=frozenset(ALLOWED[verb]),
    )


SAYS: dict[BulkAction, str] = {
    "resubmit": "They run again, with attempts counted anew. What they did before stays on record. Those that have not "
    "begun can be taken back.",
    "discard": f"They go {api.bulk.UNDO_SECONDS:.0f} seconds after they have been counted; until then it can be called "
    "off. After that they are gone for good, with attempts and payload.",
    "cancel": "Those that wait end at once; those that run are asked to stop. They can be resubmitted.",
    "run-now": "They do not wait for their time any more.",
    "move": BY_VERB["move"].says,
    "prioritize": BY_VERB["prioritize"].says,
}

ACTIONS: tuple[MatchingAction, ...] = tuple(_action(verb) for verb in get_args(BulkAction))

BY_BULK = {action.bulk: action for action in ACTIONS}


def matching_actions(user: Any, filters: Filters) -> tuple[MatchingAction, ...]:
    """What this user may do to all that match: where the filter names states, and the action suits each of them."""
    states = {JobState(state) for state in filters.states}
    return tuple(
        action
        for action in ACTIONS
        if states and states <= action.states and may(user, action.permission) and may_reach(user, _pools(filters))
    )


def _pools(filters: Filters) -> Reach:
    return frozenset({filters.pool}) if filters.pool else None
