"""The addresses of the API, with what every one of them does alike: HEAD, OPTIONS, wrong methods, unknown addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from urllib.parse import unquote_to_bytes

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, register_converter, resolve
from django.urls.converters import StringConverter
from django.views.decorators.csrf import csrf_exempt
from ninja.operation import PathView

from dashboard.api import documentation
from dashboard.api.access import caller_of
from dashboard.api.errors import answer_to, refused
from dashboard.api.operations import api


class Thing(StringConverter):
    """A name or an id, which may hold anything, slashes too; those not at its ends, so that an address may end with
    one.
    """

    regex = r"[^/](?:[\s\S]*[^/])?"


class Rest(StringConverter):
    """Whatever comes, line ends too, which ``path`` lets through to the pages of the site."""

    regex = r"[\s\S]+"


register_converter(Thing, "thing")
register_converter(Rest, "rest")


View = Callable[..., HttpResponseBase]

SLASH = "\udc2f"
"""Stands for a slash that is part of a name while an address is read. Half a character: no name can hold it itself."""


def door(view: View, methods: frozenset[str]) -> View:
    """The view behind what is the same at each address. HEAD is GET, of which the server sends no body."""

    def inside(request: HttpRequest, **parts: str) -> HttpResponseBase:
        allowed = {"Allow": ", ".join(sorted(methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())))}
        if request.method == "OPTIONS":
            return HttpResponse(status=204, headers=allowed)
        if request.method == "HEAD" and "GET" in methods:
            request.method = "GET"
        if request.method not in methods:
            fix = f"Send one of {allowed['Allow']}."
            return refused(405, "method_not_allowed", f"{request.method} does nothing here.", fix, headers=allowed)
        return view(request, **parts)

    @csrf_exempt  # whoever comes with a session is asked for the token of CSRF by ``access``
    @wraps(view)
    def opened(request: HttpRequest, **parts: str) -> HttpResponseBase:
        try:
            if not _has_written_slash(request):
                return inside(request, **parts)
            return _led_on(request, _as_written(request))
        except Exception as error:  # what is wrong before a view of the API is reached, or in one that is none of its
            return answer_to(request, error)

    opened.is_api = True  # type: ignore[attr-defined]  # read by the gate
    opened.inside = inside  # type: ignore[attr-defined]
    return opened


def _led_on(request: HttpRequest, path: str) -> HttpResponseBase:
    """What another path below the same root answers. Http404."""
    found = resolve(path)
    if not hasattr(found.func, "inside"):
        raise Http404
    found.kwargs.update({name: value.replace(SLASH, "/") for name, value in found.kwargs.items()})
    request.path_info, request.resolver_match = path, found
    return found.func.inside(request, **found.kwargs)  # type: ignore[no-any-return]


def _raw(request: HttpRequest) -> bytes:
    """The path as it was sent, which servers of ASGI and many of WSGI tell beside the one that they have decoded."""
    if told := getattr(request, "scope", {}).get("raw_path"):
        return bytes(told).partition(b"?")[0]
    told = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    return str(told).partition("?")[0].encode("latin-1", "replace")


def _has_written_slash(request: HttpRequest) -> bool:
    return b"%2f" in _raw(request).lower()


def _as_written(request: HttpRequest) -> str:
    """The path within the site in which a slash that was sent as ``%2F`` divides nothing."""
    parts = re.split(rb"%2f", _raw(request), flags=re.IGNORECASE)
    path = SLASH.join(unquote_to_bytes(part).decode("utf-8", "replace") for part in parts)
    return path.removeprefix(request.META.get("SCRIPT_NAME", "").rstrip("/"))


def _operations() -> Iterator[URLPattern]:
    """One address for each path, whatever the number of its methods."""
    for bound in api._get_bound_routers():
        for route, view in bound.path_operations.items():
            yield _pattern(f"{bound.prefix}{route}", view)


def _pattern(route: str, view: PathView) -> URLPattern:
    methods = frozenset(method for operation in view.operations for method in operation.methods)
    opened = door(view.get_view(), methods)
    opened.operations = {method: one for one in view.operations for method in one.methods}  # type: ignore[attr-defined]  # read by the test that walks all addresses
    return path(route.strip("/").replace("{", "<").replace("}", ">"), opened, name="api")


def elsewhere(request: HttpRequest, rest: str) -> HttpResponseBase:
    """An address with a slash at its end is the one without; of any other there is nothing."""
    if rest.endswith("/") and resolve(shorter := request.path_info.rstrip("/")).func is not _elsewhere:
        return _led_on(request, shorter)
    caller_of(request)
    raise Http404


EVERY = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_elsewhere = door(elsewhere, EVERY)

index = door(documentation.index, frozenset({"GET"}))

urlpatterns = [
    path("openapi.json", door(documentation.openapi, frozenset({"GET"})), name="openapi"),
    path("docs", door(documentation.docs, frozenset({"GET"})), name="api_docs"),
    *_operations(),
    path("", index, name="api_index"),
    path("<rest:rest>", _elsewhere, name="api_elsewhere"),
]
