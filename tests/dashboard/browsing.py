"""What a person does in a browser, for tests without one: send a form with its token, read the text of a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client

TOKEN = "A" * 32


def send(client: Client, url: str, data: dict[str, Any], *, script: bool = False) -> HttpResponse:
    """Posts as a form of ours would; with ``script`` as the page's script would."""
    client.cookies["csrftoken"] = TOKEN
    headers = {"accept": "application/json"} if script else {"accept": "text/html"}
    response: HttpResponse = client.post(url, {"csrfmiddlewaretoken": TOKEN, **data}, headers=headers)  # type: ignore[assignment]
    return response


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def text(response: Any) -> str:
    """The words of a page, spaces squeezed."""
    reader = _Reader()
    reader.feed(response.content.decode())
    return re.sub(r"\s+", " ", " ".join(reader.words))


def tags(response: Any) -> list[tuple[str, dict[str, str | None]]]:
    """Every tag with its attributes, in order."""
    reader = _Reader()
    reader.feed(response.content.decode())
    return reader.tags


def hidden(page: object) -> dict[str, str]:
    """The hidden fields of the page's confirmation form."""
    fields: dict[str, str] = {}
    in_question = False
    for tag, attributes in tags(page):
        if tag == "form":  # the frame of the page has forms of its own, for theme and log-out
            in_question = "confirm" in str(attributes.get("class", ""))
        elif in_question and tag == "input" and attributes.get("type") == "hidden":
            fields[str(attributes["name"])] = str(attributes["value"])
    fields.pop("csrfmiddlewaretoken", None)
    return fields
