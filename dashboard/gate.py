"""Refuses bodies that nobody is going to read before they are received, and addresses that are no text.

Under ASGI Django takes in a whole body, into a file where it is large, before it looks at who sends it. What the head
of a request tells is therefore judged here: that the body is too large, or that nobody is named who sends it. One whose
length is not told beforehand is counted as it comes, and cut off. What is not read the server throws away as it comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.urls import ResolverMatch

from dashboard.api.errors import RequestInvalid, Unauthorized, answer_to
from dashboard.middleware import SecurityHeaders
from dashboard.subpath import address

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Gate:
    """Lets through to ``application`` what it may read. It stands before the dashboard's addresses and no others."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        is_text = _is_text(scope.get("query_string", b""))
        found = address(scope) if _has_body(headers) or not is_text else None
        if found is None:
            await self.application(scope, receive, send)
        elif not is_text:  # Django answers it before any middleware has a say
            await _answer(send, RequestInvalid("The address is no UTF-8.", fix="Write other bytes as %C3%A9."))
        elif refusal := _refusal(headers, found):
            # Whoever waits to be told to send the body need not: what comes next would be taken for it.
            await _answer(send, refusal, closes=b"expect" in headers)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        most, taken = _limit(), 0

        def is_cut() -> bool:
            return taken > most

        async def counted() -> Any:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            # To Django it is as if the sender had gone: it stops, throws away what it has, and answers nobody.
            return {"type": "http.disconnect"} if is_cut() else message

        await self.application(scope, counted, send)
        if is_cut():
            await _answer(send, RequestDataTooBig())


def _is_text(query: bytes) -> bool:
    try:
        query.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _refusal(headers: dict[bytes, bytes], found: ResolverMatch) -> Exception | None:
    """What is wrong with a request, as far as its head tells."""
    names_somebody = b"authorization" in headers or settings.SESSION_COOKIE_NAME.encode() in headers.get(b"cookie", b"")
    if getattr(found.func, "is_api", False) and not names_somebody:
        return Unauthorized()
    length = headers.get(b"content-length", b"0")
    return RequestDataTooBig() if length.isdigit() and int(length) > _limit() else None


def _limit() -> float:
    """Bytes of a body."""
    most: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return inf if most is None else most


async def _answer(send: Send, error: Exception, *, closes: bool = False) -> None:
    response = SecurityHeaders(lambda request: answer_to(request, error))(HttpRequest())
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    headers.append((b"content-length", str(len(response.content)).encode()))  # type: ignore[attr-defined]  # of JSON
    headers += [(b"connection", b"close")] if closes else []
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})  # type: ignore[attr-defined]
