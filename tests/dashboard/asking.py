"""What a program does with the HTTP API, for tests: ask with a token, read JSON."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote

from django.core.handlers.asgi import ASGIRequest
from django.test import Client
from django.urls import resolve


class Answer(NamedTuple):
    status: int
    document: Any
    headers: Any

    @property
    def code(self) -> str:
        """Of the error."""
        return str(self.document["error"]["code"])

    @property
    def words(self) -> str:
        """Message and fix of the error."""
        error = self.document["error"]
        return f"{error['message']} {error['fix']}"


class Program:
    """Has a token and nothing else: no cookie, no session."""

    def __init__(self, token: str = "", **headers: str) -> None:
        self.client = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
        self.headers = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}

    def ask(self, method: str, address: str, body: Any = None, **query: Any) -> Answer:
        """``body``: anything that JSON can hold, or bytes as they are. ``address``: below ``/api/v1/``."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        response = self.client.generic(
            method.upper(),
            f"/api/v1/{address}",
            data,
            content_type="application/json",
            headers=self.headers,
            query_params=query or None,
        )
        document = json.loads(response.content) if response.content else None
        return Answer(response.status_code, document, response.headers)

    def as_sent(self, method: str, address: str) -> Answer:
        """By an address as it goes over the wire, with a path as servers tell it. ``ask`` sends it decoded."""
        raw = f"/api/v1/{address}"
        scope = {
            "type": "http",
            "method": method.upper(),
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in self.headers.items()],
        }
        request = ASGIRequest(scope, BytesIO())
        found = resolve(request.path_info)
        request.resolver_match = found
        response = found.func(request, **found.kwargs)
        return Answer(response.status_code, json.loads(response.content), response.headers)

    def get(self, address: str, **query: Any) -> Answer:
        return self.ask("get", address, **query)

    def post(self, address: str, body: Any = None) -> Answer:
        return self.ask("post", address, body)

    def delete(self, address: str) -> Answer:
        return self.ask("delete", address)
