"""What people may do to a bulk operation that they, or others, have started."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.http import QueryDict

from dashboard.actions.base import Action, Order, Question, Told
from dashboard.actions.matching import BY_BULK, NumberForm, number_of
from dashboard.formats import exactly
from dashboard.links import bulk_url
from jobs import api
from jobs.api import BulkOperation
from jobs.api.reach import Reach


@dataclass(frozen=True, kw_only=True)
class BulkOperationAction(Action):
    """One verb for an operation, of which it names the number."""

    def reach(self, ids: tuple[str, ...], given: QueryDict) -> Reach:
        request = api.bulk.get(ids[0]).request if ids else None
        if request is None or not request.filter.pool:
            return None
        return frozenset({request.filter.pool, request.pool} - {""})

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        operation = api.bulk.get(ids[0] if ids else "")
        left = operation.total - operation.handled
        what, goes_on = f"{operation.request.action} {exactly(left, 'job')}?", self.verb == "confirm"
        return Question(
            what.capitalize() if goes_on else f"{self.label}: {what}",
            self.says,
            ids,
            number=left if goes_on else None,
            hidden=(("number", str(operation.total)),),
        )


def _confirm(order: Order) -> Told:
    operation = _allowed(order)
    api.bulk.confirm(operation.id, number_of(order.given.get("number")))
    return Told("It goes on.", goto=bulk_url(operation.id))


def _cancel(order: Order) -> Told:
    stopped = api.bulk.stop(order.id)
    if not stopped.is_over:
        text = "It stops when the jobs that a worker host has in hand have been dealt with."
        return Told(text, goto=bulk_url(stopped.id))
    if not stopped.handled:
        return Told("It was called off: nothing was done.", goto=bulk_url(stopped.id))
    return Told(f"Stopped. {exactly(stopped.handled, 'job')} had been dealt with.", goto=bulk_url(stopped.id))


def _undo(order: Order) -> Told:
    made = api.bulk.undo(order.id)
    return Told("Taking back what has not begun has been asked for.", goto=bulk_url(made.id))


def _allowed(order: Order) -> BulkOperation:
    """An operation is confirmed by those only who might have started it."""
    operation = api.bulk.get(order.id)
    permission = BY_BULK[operation.request.action].permission
    if not order.may(permission):
        raise PermissionDenied(permission)
    return operation


ACTIONS: tuple[Action, ...] = (
    BulkOperationAction(
        noun="bulk",
        verb="confirm",
        label="Go on with",
        says="It acts on the jobs that were counted, and on no others.",
        perform=_confirm,
        panel="bulk",
        form=NumberForm,
    ),
    BulkOperationAction(
        noun="bulk",
        verb="cancel",
        label="Cancel",
        says="What was done stays done; the rest is as it was.",
        perform=_cancel,
        panel="bulk",
    ),
    BulkOperationAction(
        noun="bulk",
        verb="undo",
        label="Undo",
        says="Those of its jobs that have not begun are cancelled.",
        perform=_undo,
        panel="bulk",
    ),
)
