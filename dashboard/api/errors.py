"""From an error to its answer: ``{"error": {"code", "message", "fix"}}`` and the status that fits.

Words and codes are those of the command line. Where the store or the database is away, the answer does not say where
they are: that stands in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import DatabaseError, DataError
from django.http import Http404, HttpRequest, JsonResponse, UnreadablePostError
from django.http.request import RawPostDataException
from django.urls import reverse
from ninja.errors import HttpError

from dashboard.overall import TROUBLE, trouble_of
from jobs.core.wording import error_dict
from jobs.exceptions import (
    DuplicateJob,
    LeaseLost,
    OptionInvalid,
    OutcomeUnknown,
    PayloadInvalid,
    PayloadTooLarge,
    PoolFull,
    ScheduleInvalid,
    SchedulerError,
    StoreUnavailable,
    TopologyError,
    UnknownJobType,
    WorkflowInvalid,
    WrongState,
)

log = logging.getLogger("dashboard.api")

AGAIN_SECONDS = 2
"""What ``Retry-After`` says where the store, the database or a full pool stands in the way."""

NO_NUL = "Leave out NUL characters, and numbers beyond what a database holds."

LOOK = "Look whether it was done before you do it again; a job that has an id of yours is never made twice."


class RequestInvalid(SchedulerError):
    """The request cannot be read as it stands."""

    code = "request_invalid"


class Unauthorized(SchedulerError):
    """Nobody knows who asks."""

    code = "unauthorized"

    def __init__(
        self,
        message: str = "You are not logged in.",
        *,
        fix: str = "Send Authorization: Bearer TOKEN, or log in.",
    ) -> None:
        super().__init__(message, fix=fix)


class Forged(SchedulerError):
    """A session without the token that shows that a page of ours sent the request."""

    code = "csrf_failed"


class TooManyRequests(SchedulerError):
    """This user asks more often than the project allows. ``seconds``: until they may ask again."""

    code = "too_many_requests"

    def __init__(self, message: str, *, fix: str, seconds: int) -> None:
        super().__init__(message, fix=fix)
        self.seconds = seconds


_STATUSES: tuple[tuple[tuple[type[SchedulerError], ...], int], ...] = (
    (
        (RequestInvalid, UnknownJobType, PayloadInvalid, OptionInvalid, ScheduleInvalid, WorkflowInvalid),
        400,
    ),
    ((Unauthorized,), 401),
    ((Forged,), 403),
    ((DuplicateJob, WrongState, TopologyError, LeaseLost), 409),
    ((PayloadTooLarge,), 413),
    ((PoolFull, TooManyRequests), 429),
    ((StoreUnavailable, OutcomeUnknown), 503),
)


def status_of(error: SchedulerError) -> int:
    """The status of an answer that tells of this error."""
    for classes, status in _STATUSES:
        if isinstance(error, classes):
            return status
    return 404 if error.code.endswith("_not_found") else 500


def refused(
    status: int, code: str, message: str, fix: str = "", *, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """The answer that tells of an error."""
    waits = {"Retry-After": str(AGAIN_SECONDS)} if status in (429, 503) else {}
    asks = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    error = {"code": code, "message": message, "fix": fix or docs()}
    return JsonResponse({"error": error}, status=status, headers={**waits, **asks, **(headers or {})})


def docs() -> str:
    """The fix of an error that has none of its own."""
    return f"See {reverse('dashboard:api_docs')}."


def answer_to(request: HttpRequest, error: BaseException) -> JsonResponse:
    """The answer to whatever a request ended with."""
    match error:
        case OutcomeUnknown():
            log.warning("api.outcome_unknown %s: %s", request.path, error)
            return refused(503, error.code, f"{TROUBLE} It is not known whether this was done.", LOOK)
        case StoreUnavailable():
            log.warning("api.store_away %s: %s", request.path, error)
            return refused(503, error.code, *trouble_of(error))
        case SchedulerError() if (status := status_of(error)) < 500:
            later = {"Retry-After": str(error.seconds)} if isinstance(error, TooManyRequests) else {}
            return refused(status, **error_dict(error), headers=later)
        case PermissionDenied():
            return refused(403, "forbidden", f"This takes the permission {error}.", "Ask whoever gives permissions.")
        case Http404():
            return refused(404, "not_found", "There is nothing at this address.")
        case RequestDataTooBig():
            return refused(413, "body_too_large", "The body is larger than this server takes.", "Send less at once.")
        case HttpError() | SuspiciousOperation() | RawPostDataException() | UnreadablePostError():
            return refused(400, RequestInvalid.code, "The body cannot be read.", "Send one JSON object.")
        case DataError():
            return refused(400, RequestInvalid.code, "Something in the request is no text that can be kept.", NO_NUL)
        case DatabaseError():
            log.warning("api.database_away %s: %s", request.path, error)
            return refused(503, "database_unavailable", "The database cannot be used.", "Try again in a moment.")
        case _:
            # As Django does with what nobody expected: told to the log and to whoever listens, and not to the caller.
            log.error("api.failed %s %s", request.method, request.path, exc_info=error)
            got_request_exception.send(sender=answer_to, request=request)
            return refused(500, "internal_error", "Something went wrong here.", "It is in the log of the server.")
