"""What all addresses have in common: what a request may say, who acts, and how the answer goes out."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, NoReturn, get_args

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from ninja import NinjaAPI
from ninja.errors import ValidationErrorContext
from ninja.operation import Operation
from ninja.parser import Parser
from pydantic import BaseModel

from dashboard.api.access import Caller
from dashboard.api.errors import RequestInvalid, answer_to, docs
from jobs import api
from jobs.core.wording import did_you_mean, shown

log = logging.getLogger("dashboard.api")

BUDGET_SECONDS = 5.0
"""So long one request may ask the store, retries included: a restart of the server is waited for, and not much more."""

SAFE = ("GET", "HEAD")

UNKNOWN = "extra_forbidden"
"""What pydantic calls a field that there is not."""


def caller(request: HttpRequest) -> Caller:
    """Who asks: found out before the address was asked."""
    found: Caller = request.auth  # type: ignore[attr-defined]  # set with the answer of ``Token``
    return found


class Strict(Parser):
    """JSON and nothing else: no NaN, no duplicate names, no half characters."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        try:
            text = request.body.decode()  # by itself ``loads`` lets half characters through
            value: dict[str, Any] = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_without_repeats)
            if "\\ud" in text.lower():
                _refuse_half_characters(value)
        except RecursionError:
            raise RequestInvalid("The body is nested too deeply.", fix="Flatten it.") from None
        except ValueError as error:  # covers wrong JSON, bytes that are not UTF-8, and numbers of thousands of digits
            raise RequestInvalid(
                f"The body is not JSON: {error}.", fix='Send one JSON object: {"name": value}.'
            ) from None
        return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed in JSON")


def _refuse_half_characters(value: Any) -> None:
    """ValueError for lone surrogates, which neither the store nor a database nor an answer can hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is no character") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shown(twice)} stands in it twice")
    return found


class Api(NinjaAPI):
    """Says what is wrong with a request in our words: the field, and the nearest one that there is."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """``pools_scale``"""
        return f"{operation.view_func.__module__.rpartition('.')[2]}_{operation.view_func.__name__}"

    def on_exception(self, request: HttpRequest, exc: Any) -> JsonResponse:
        # A body that is no JSON arrives wrapped in an error of the framework; the cause says what is wrong with it.
        cause = exc.__cause__ if isinstance(exc.__cause__, (RequestInvalid, RequestDataTooBig)) else exc
        return answer_to(request, cause)

    def validation_error_from_error_contexts(self, error_contexts: list[ValidationErrorContext[Any]]) -> Any:
        context = error_contexts[0]
        found = context.pydantic_validation_error.errors(include_url=False, include_input=False)
        # A name that was mistyped also makes the right one missing: it is the cause.
        return _explained(context.model, next((one for one in found if one["type"] == UNKNOWN), found[0]))


def _explained(model: Any, error: Any) -> RequestInvalid:
    """The first thing that is wrong. Values are not repeated: they may be secrets."""
    place = [part for part in error["loc"][1:] if not _is_choice(part)] or [*error["loc"]]
    name = ".".join(map(str, place))
    if error["type"] == UNKNOWN:
        known = _fields_at(model, error["loc"][:-1])
        return RequestInvalid(f"There is no field {shown(place[-1])}", fix=did_you_mean(str(place[-1]), known))
    if error["type"] == "missing":
        return RequestInvalid(f"{name}: is missing", fix=f"Send {name}.")
    return RequestInvalid(f"{name}: {error['msg'][:1].lower()}{error['msg'][1:]}", fix=docs())


def _is_choice(part: Any) -> bool:
    """Whether it names a branch of a union, which is no place in the body."""
    return isinstance(part, str) and ("[" in part or part in ("float", "str", "bool", "int"))


def _fields_at(model: Any, place: tuple[Any, ...]) -> list[str]:
    """The names of the fields of what stands at this place of a model."""
    for part in place:
        if isinstance(part, str) and part in getattr(model, "model_fields", {}):
            model = _model_in(model.model_fields[part].annotation)
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]


def _model_in(annotation: Any) -> Any:
    found = [
        kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type) and issubclass(kind, BaseModel)
    ]
    return found[0] if found else None


def answered(view: Callable[..., Any]) -> Callable[..., Any]:
    """Around each address: refuses words that it does not know, limits its time, notes who acted, answers JSON."""

    @wraps(view)
    def inside(request: HttpRequest, **values: Any) -> JsonResponse:
        _refuse_unknown_words(request, view)
        looking = api.moment() if request.method in SAFE else nullcontext()
        with api.budget(BUDGET_SECONDS), looking, _acting(request, values) as actor:
            answer = view(request, **values)
        response = answer if isinstance(answer, JsonResponse) else JsonResponse(answer)
        if actor is not None and actor.unrecorded:
            response["Warning"] = '199 - "done, but not written into the audit log"'
        return response

    return inside


def created(document: dict[str, Any]) -> JsonResponse:
    return JsonResponse(document, status=201)


@contextmanager
def _acting(request: HttpRequest, values: dict[str, Any]) -> Iterator[Any]:
    """Who acts, and why where the body says so. Whoever only looks does not."""
    if request.method in SAFE:
        yield None
        return
    who = caller(request)
    reason = next((given for body in values.values() if (given := getattr(body, "reason", ""))), "")
    with api.audit.acting(who.name, "api", reason=reason) as actor:
        yield actor
    log.info("api.action %s %s by %s, token %s", request.method, request.path, who.name, who.token)


def _refuse_unknown_words(request: HttpRequest, view: Any) -> None:
    known: set[str] = set()
    for model in view._ninja_operation.models:
        if model.__ninja_param_source__ == "query":
            known |= set(model.__ninja_flatten_map__)
    for word in request.GET:
        if word not in known:
            none = "This address takes no words after the question mark."
            raise RequestInvalid(f"There is no word {shown(word)} here", fix=did_you_mean(word, known, none=none))
