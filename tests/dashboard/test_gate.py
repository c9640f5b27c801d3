"""Bodies that nobody will read are refused before they are received, and only those that the dashboard would get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dashboard.gate import Gate

LIMIT = 1_000
TOKEN = {"authorization": "Bearer x"}
LOGIN = {"cookie": "sessionid=x"}


class Asked:
    """One request, and what came of it. The application behind the gate reads the whole body and answers 204."""

    def __init__(self, path: str, chunks: list[bytes], **headers: str) -> None:
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        self.chunks = chunks
        self.received, self.sent = 0, list[dict[str, Any]]()
        self.got_through: bytes | None = None

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        body = self.chunks[self.received - 1] if self.received <= len(self.chunks) else b""
        return {"type": "http.request", "body": body, "more_body": self.received < len(self.chunks)}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.got_through = body
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def answer(self) -> tuple[int, str]:
        """Status, and the code of the error."""
        await Gate(self.application)(self.scope, self.receive, self.send)
        status, body = self.sent[0]["status"], b"".join(message.get("body", b"") for message in self.sent)
        return status, json.loads(body)["error"]["code"] if body else ""


@pytest.fixture(autouse=True)
def _limited(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = LIMIT


@pytest.mark.parametrize("address", ["/api/v1/jobs", "/api/v1/nothing", "/dashboard/reveal/", "/accounts/login/"])
async def test_a_body_that_says_it_is_too_large_is_not_received(address: str) -> None:
    asked = Asked(address, [b"x" * (LIMIT + 1)], content_length=str(LIMIT + 1), **TOKEN)

    assert await asked.answer() == (413, "body_too_large")
    assert (asked.received, asked.got_through) == (0, None)


async def test_a_body_that_does_not_say_so_is_cut_off() -> None:
    asked = Asked("/api/v1/jobs", [b"x" * 400] * 100, transfer_encoding="chunked", **TOKEN)

    assert await asked.answer() == (413, "body_too_large")
    assert (asked.received, asked.got_through) == (3, None)


@pytest.mark.parametrize("length", [{"content_length": "2"}, {"transfer_encoding": "chunked"}])
async def test_a_body_for_the_api_from_nobody_is_not_received(length: dict[str, str]) -> None:
    asked = Asked("/api/v1/jobs", [b"{}"], **length)

    assert await asked.answer() == (401, "unauthorized")
    assert asked.received == 0
    assert (b"www-authenticate", b"Bearer") in asked.sent[0]["headers"]
    assert (b"x-content-type-options", b"nosniff") in asked.sent[0]["headers"]


@pytest.mark.parametrize("expects", [True, False])
async def test_the_connection_goes_on_unless_the_body_may_never_come(expects: bool) -> None:
    more = {"expect": "100-continue"} if expects else {}
    asked = Asked("/api/v1/jobs", [b"{}"], content_length="2", **more)

    assert await asked.answer() == (401, "unauthorized")
    assert ((b"connection", b"close") in asked.sent[0]["headers"]) == expects


@pytest.mark.parametrize(
    ("address", "headers"),
    [("/api/v1/jobs", TOKEN), ("/api/v1/jobs", LOGIN), ("/accounts/login/", {}), ("/dashboard/reveal/", LOGIN)],
)
async def test_what_may_be_read_gets_through_whole(address: str, headers: dict[str, str]) -> None:
    for length in ({"content_length": str(LIMIT)}, {"transfer_encoding": "chunked"}):
        asked = Asked(address, [b"x" * 500, b"y" * 500], **length, **headers)

        assert await asked.answer() == (204, "")
        assert asked.got_through == b"x" * 500 + b"y" * 500


@pytest.mark.parametrize("address", ["/admin/upload/", "/shop/"])
async def test_addresses_of_the_project_are_none_of_its_business(address: str) -> None:
    asked = Asked(address, [b"x" * (LIMIT + 1)], content_length=str(LIMIT + 1))

    assert await asked.answer() == (204, "")


@pytest.mark.parametrize("address", ["/dashboard/jobs/", "/api/v1/jobs"])
async def test_an_address_that_is_no_text_is_refused_with_the_headers_of_every_answer(address: str) -> None:
    asked = Asked(address, [])
    asked.scope |= {"method": "GET", "query_string": b"search=\xff"}

    assert await asked.answer() == (400, "request_invalid")
    assert b"content-security-policy" in dict(asked.sent[0]["headers"])


async def test_without_a_limit_nothing_is_too_large(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    asked = Asked("/api/v1/jobs", [b"x" * (LIMIT + 1)] * 2, transfer_encoding="chunked", **TOKEN)

    assert await asked.answer() == (204, "")
