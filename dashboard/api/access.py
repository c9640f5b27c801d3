"""Who asks, and whether they may: judged before anything of a request is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from ninja.utils import check_csrf

from dashboard.actions import BY_SLUG
from dashboard.api.errors import Forged, Unauthorized
from dashboard.api.pace import refusal_of_token, refuse_hurried
from dashboard.permissions import ADMINISTER, ENQUEUE, OPERATE, VIEW, closed_pools, may, refuse_closed
from jobs import api
from jobs.api.reach import Reach

NAMES = {VIEW: "view", ENQUEUE: "enqueue", OPERATE: "operate", ADMINISTER: "administer"}
"""Permission → the scope of tokens that holds it."""


@dataclass(frozen=True)
class Caller:
    """A user of Django, and the permissions that their token may use; None: all that are theirs."""

    user: Any
    within: frozenset[str] | None = None
    token: int | None = None

    @property
    def name(self) -> str:
        return str(self.user.get_username())

    def may(self, permission: str) -> bool:
        return (self.within is None or permission in self.within) and may(self.user, permission)

    def refuse_without(self, permission: str) -> None:
        """PermissionDenied that names the permission."""
        if not self.may(permission):
            raise PermissionDenied(permission)

    def refuse_closed(self, reach: Callable[[], Reach]) -> None:
        """PermissionDenied that names the pools in which this user may not act, of those that ``reach`` finds: it is
        asked only where there are any.
        """
        if closed_pools(self.user):
            refuse_closed(self.user, reach())


def caller_of(request: HttpRequest) -> Caller:
    """Who sends the request: by its token, else by its session, which must then prove that a page of ours sent it.

    Raises Unauthorized, Forged, TooManyRequests.
    """
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":  # another one is for a proxy in front of us
        found = api.tokens.bearer(secret.strip())
        if found is None:
            raise refusal_of_token(request)
        request.user = found.user
        refuse_hurried(found.user)
        return Caller(found.user, found.within, found.id)
    if not (request.user.is_authenticated and request.user.is_active):
        raise Unauthorized
    if check_csrf(request) is not None:
        raise Forged("The request has no valid CSRF token.", fix="Send X-CSRFToken, or use a bearer token.")
    refuse_hurried(request.user)
    return Caller(request.user)


class Token:
    """What an operation needs: permissions, or those of an action of the dashboard with the pools that it touches.

    Named for what people read in the OpenAPI document.
    """

    openapi_security_schema = {
        "type": "http",
        "scheme": "bearer",
        "description": "`manage.py tokens create USER`. A session of the dashboard is taken too, with its CSRF token.",
    }

    def __init__(self, *permissions: str, action: str = "") -> None:
        self.action = BY_SLUG[action] if action else None
        own = (VIEW, self.action.permission) if self.action else ()
        self.permissions = tuple(dict.fromkeys((*permissions, *own)))

    def __call__(self, request: HttpRequest) -> Caller:
        caller = caller_of(request)
        for permission in self.permissions:
            caller.refuse_without(permission)
        if self.action is not None:
            caller.refuse_closed(partial(self.action.reach, _named(request), QueryDict()))
        return caller


def _named(request: HttpRequest) -> tuple[str, ...]:
    """The one thing that the address names."""
    match = request.resolver_match
    return tuple(str(value) for value in match.kwargs.values())[:1] if match else ()


seen = Token(VIEW)
"""For all that only looks."""


def acting(slug: str) -> Token:
    """For what the dashboard does by this action: ``pool.pause``."""
    return Token(action=slug)
