"""What is answered while the database is away: it knows who asks, so nothing can be shown or done without it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

log = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)
"""What a database cannot be asked for: it is not there, or is not what it should be."""

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def told_without_database(view: View[P]) -> View[P]:
    """The view answers 503 in words, to scripts as JSON, where the database is away. Where it is stands in the log."""

    @wraps(view)
    def told(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except AWAY as error:
            log.warning("dashboard.database_away %s: %s", request.path, error)
            return _answer(request)

    return told  # type: ignore[return-value]  # functools.wraps forgets that arguments are positional


def _answer(request: HttpRequest) -> HttpResponseBase:
    message = "The database cannot be reached."
    looks = request.method in ("GET", "HEAD")
    fix = "Try again in a moment." if looks else "Look whether it was done before you do it again."
    if request.accepts("text/html"):
        return render(request, "503.html", {"message": message, "fix": fix}, status=503)
    error = {"code": "database_unavailable", "message": message, "fix": fix}
    return JsonResponse({"ok": False, "message": f"{message} {fix}", "error": error}, status=503)
