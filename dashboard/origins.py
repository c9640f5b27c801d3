"""Refuses WebSockets that a foreign page opens with the reader's cookies, before anything is accepted.

The browser's ``Origin`` must equal the address that the page itself has: scheme, host and port. Further origins are
those of ``CSRF_TRUSTED_ORIGINS``, so one setting covers forms and sockets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

Scope = Any  # of ASGI; typed differently by each library that speaks it
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Any

DEFAULT_PORTS = {"http": "80", "https": "443"}
LOCAL_HOSTS = [".localhost", "127.0.0.1", "[::1]"]


class SameOrigin:
    """Lets a handshake through to ``application`` only when it comes from a page of this site."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        if allowed(scope):
            return await self.application(scope, receive, send)
        await refuse(scope, receive, send)
        return None


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Closes before anything is accepted: the browser sees a 403."""
    await receive()  # the handshake itself
    await send({"type": "websocket.close", "code": 4403})


def allowed(scope: Scope) -> bool:
    """Whether the handshake's origin is this site or a trusted one. Missing and ``null`` origins are not."""
    headers = _headers(scope)
    origin = _split(headers.get("origin", ""))
    if origin is None:
        return False
    host = headers.get("host", "")
    hosts = settings.ALLOWED_HOSTS or (LOCAL_HOSTS if settings.DEBUG else [])
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, hosts):
        return False
    return origin == _split(f"{_scheme(scope, headers)}://{host}") or _trusted(origin, settings.CSRF_TRUSTED_ORIGINS)


def _scheme(scope: Scope, headers: dict[str, str]) -> str:
    """The page's scheme: what the server saw, or what a proxy that is trusted by settings says."""
    secure = scope.get("scheme") in ("wss", "https")
    if settings.SECURE_PROXY_SSL_HEADER:
        name, value = settings.SECURE_PROXY_SSL_HEADER
        given = headers.get(name.removeprefix("HTTP_").replace("_", "-").lower())
        if given is not None:
            secure = given.split(",")[0].strip() == value
    return "https" if secure else "http"


def _split(origin: str) -> tuple[str, str, str] | None:
    """(scheme, host, port) with the scheme's own port filled in; None when it is not an http(s) origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.path or parts.query or parts.username:
        return None
    return parts.scheme, parts.hostname, str(port or DEFAULT_PORTS[parts.scheme])


def _trusted(origin: tuple[str, str, str], trusted: Iterable[str]) -> bool:
    for listed in trusted:
        wildcard = "://*." in listed
        pattern = _split(listed.replace("://*.", "://") if wildcard else listed)
        if pattern is None or pattern[0] != origin[0] or pattern[2] != origin[2]:
            continue
        if is_same_domain(origin[1], f".{pattern[1]}" if wildcard else pattern[1]):
            return True
    return False


def _headers(scope: Scope) -> dict[str, str]:
    """Header names in small letters; a header that comes twice counts as its values joined, which match nothing."""
    found: dict[str, str] = {}
    for name, value in scope.get("headers", []):
        key, text = name.decode("latin1").lower(), value.decode("latin1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
