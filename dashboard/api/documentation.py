"""The API about itself: the OpenAPI document, and a page of it for people, made here of the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from dashboard import reads
from dashboard.api import answers
from dashboard.api.access import NAMES, Token, caller_of
from dashboard.api.operations import api
from dashboard.permissions import VIEW
from dashboard.shell import shell

REFERENCE = "#/components/schemas/"

DESCRIPTION = (
    "Everything that pages and commands do, as JSON. Send `Authorization: Bearer TOKEN`; make one with "
    '`manage.py tokens create USER`. Errors are `{"error": {"code", "message", "fix"}}`. '
    'Lists are `{"items": […], "next_cursor": …}`.'
)


def index(request: HttpRequest) -> HttpResponseBase:
    """Where to read on."""
    caller_of(request)
    return JsonResponse({"openapi": reverse("dashboard:openapi"), "docs": reverse("dashboard:api_docs")})


def openapi(request: HttpRequest) -> HttpResponseBase:
    caller_of(request)
    return JsonResponse(document(reverse("dashboard:api_index")))


def docs(request: HttpRequest) -> HttpResponseBase:
    """Without a script, and without a request to anybody else."""
    caller_of(request).refuse_without(VIEW)
    found = document(reverse("dashboard:api_index"))
    context = shell(reads.overall()) | {"nouns": nouns(found), "openapi": found}
    return render(request, "dashboard/api.html", context)


docs.required_permissions = (VIEW,)  # type: ignore[attr-defined]  # read by the test that walks all addresses


@cache
def document(root: str) -> dict[str, Any]:
    """The OpenAPI document of the API whose addresses begin with this path."""
    found: dict[str, Any] = dict(api.get_openapi_schema(path_prefix=root))
    found["info"]["description"] = DESCRIPTION
    found["components"]["schemas"] |= _schemas(answers.Error)
    permissions = _permissions()
    for operation in _each(found):
        summary, _, rest = operation["description"].replace("``", "`").partition("\n\n")
        needs = permissions[operation["operationId"]]
        operation |= {"summary": summary.replace("\n", " "), "description": rest, "x-permissions": needs}
        operation["responses"]["default"] = {
            "description": "Refused: code, message and what to do about it.",
            "content": {"application/json": {"schema": {"$ref": f"{REFERENCE}Error"}}},
        }
    return found


def _schemas(model: Any) -> dict[str, Any]:
    found = model.model_json_schema(ref_template=REFERENCE + "{model}")
    return {**found.pop("$defs", {}), found["title"]: found}


def _each(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in found["paths"].values():
        yield from methods.values()


def _permissions() -> dict[str, list[str]]:
    """Operation → the permissions that it needs at least."""
    found: dict[str, list[str]] = {}
    for bound in api._get_bound_routers():
        for view in bound.path_operations.values():
            for operation in view.operations:
                needs = cast(Token, operation.auth_callbacks[0])
                found[api.get_openapi_operation_id(operation)] = [*needs.permissions]
    return found


# --- as a page --------------------------------------------------------------------------------------------------------


def nouns(found: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Noun → what the page says of its operations, in their order."""
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            told[operation["tags"][0]].append(_told(found, path, method.upper(), operation))
    return dict(told)


def _told(found: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    words = [
        _field(found, one["name"], one["schema"], one["required"])
        for one in operation["parameters"]
        if one["in"] == "query"
    ]
    return {
        "id": operation["operationId"],
        "method": method,
        "path": path,
        "summary": operation["summary"].replace("`", ""),
        "description": operation["description"].replace("`", ""),
        "scopes": [NAMES[permission] for permission in operation["x-permissions"]],
        "words": words,
        "fields": _fields(found, body) if body else [],
        "answers": _answers(operation),
        "curl": _curl(path, method, body is not None),
    }


def _fields(found: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    whole = _resolved(found, schema)
    required = whole.get("required", [])
    return [_field(found, name, field, name in required) for name, field in whole.get("properties", {}).items()]


def _field(found: Mapping[str, Any], name: str, schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    words = " or ".join(_words(found, schema))
    return {"name": name, "type": words, "required": required, "says": schema.get("description", "")}


def _words(found: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The types that a value may have."""
    if "anyOf" in schema:
        return list(dict.fromkeys(word for each in schema["anyOf"] for word in _words(found, each)))
    if schema.get("type") == "array":
        return [f"list of {' or '.join(_words(found, schema['items']))}s"]
    return [str(schema.get("type", "any"))]


def _resolved(found: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that a reference, or one with null beside it, stands for."""
    for each in schema.get("anyOf", [schema]):
        if "$ref" in each:
            resolved: Mapping[str, Any] = found["components"]["schemas"][each["$ref"].removeprefix(REFERENCE)]
            return resolved
    return schema


def _answers(operation: Mapping[str, Any]) -> list[tuple[str, str]]:
    told = []
    for status, answer in operation["responses"].items():
        schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
        if status != "default":
            names = [each["$ref"].removeprefix(REFERENCE) for each in schema.get("anyOf", [schema]) if "$ref" in each]
            told.append((str(status), " or ".join(names)))
    return told


def _curl(path: str, method: str, has_body: bool) -> str:
    verb = "" if method == "GET" else f" -X {method}"
    body = " -H 'Content-Type: application/json' -d '{…}'" if has_body else ""
    return f'curl{verb} -H "Authorization: Bearer $TOKEN"{body} $HOST{path}'
