"""Whatever stands in an address or a form: a page, or one sentence that says what is wrong. Never a failure, and never
more work than an honest request makes.

Nothing is listed that could be forgotten: addresses are walked, and the words that each of them reads are seen while it
reads them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from tests.dashboard.browsing import tags, text
from tests.dashboard.conftest import Count
from tests.dashboard.seeding import Shop
from tests.dashboard.test_matrix import Things, addresses, concrete

pytestmark = [pytest.mark.thorough, pytest.mark.django_db]

LONG = 700  # of each of some forty words: servers take no longer address than 64 KB
HOSTILE = {
    "nothing": "",
    "NUL": "%00",
    "no UTF-8": "%FF%FE",
    "half a character": "%ED%A0%80",
    "an escape cut short": "%",
    "line ends": "a%0D%0ASet-Cookie:%20x=y",
    "very long": "x" * LONG,
    "a very large number": "9" * 4_400,  # more digits than Python turns into a number
    "below zero": "-1",
    "no finite number": "1e999",
    "a digit that is none": "%C2%B2",
    "another kind of thing": "%5B%7B%22a%22:null%7D%5D",
    "a moment that there is not": "0001-01-01T00:00:00%2B14:00",
    "a time beyond all": "999999999d",
    "markup": "%3Cb%20x%3E%22'%7B%7B7*7%7D%7D",
    "a path upwards": "../../etc/passwd%00.html",
    "another site": "//elsewhere.example/",
}
"""What it is → how it stands in a query string."""

WHAT = tuple(HOSTILE)

NO_FAILURE = {200, 302, 303, 400, 404, 409}
MOST_TRIPS = 75
"""To the store with nothing remembered. The doctor makes 54, whatever it is asked; others far fewer."""

MOST_BYTES = 1_000_000

PARTS = 3
"""Of the addresses: a test of all of them would take a slow machine minutes."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of refusals are no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def root(db: None) -> Client:
    """Who may do everything, and is told of failures instead of having them raised."""
    client = Client(raise_request_exception=False, headers={"host": "localhost"})
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The words that were read from query strings and forms until now."""
    found: set[str] = set()

    def spy(name: str) -> None:
        real = getattr(QueryDict, name)

        def reading(self: QueryDict, key: Any, *args: Any, **kwargs: Any) -> Any:
            found.add(str(key))
            return real(self, key, *args, **kwargs)

        monkeypatch.setattr(QueryDict, name, reading)

    for name in ("get", "getlist", "__getitem__", "__contains__"):
        spy(name)
    return found


def asked(shop: Shop) -> list[str]:
    """Every address that is looked at: not those that only take something, or end the session."""
    things = Things(shop)
    routes = [route for route, _ in addresses() if route != "accounts/logout/"]
    return list(dict.fromkeys(address for route in routes for address in concrete(route, things)))


def wrong(response: Any, trips: int) -> str:
    """What an answer should not have been; empty: it is as it should be."""
    if response.status_code == 405:
        return ""
    if response.status_code not in NO_FAILURE | {426, 503}:
        return f"answered {response.status_code}"
    if response.status_code == 503 and "livez" not in response.request["PATH_INFO"]:
        return "took a bad request for a failure of the store"
    if response.status_code in (400, 404) and not says_something(response):
        return f"said nothing with its {response.status_code}"
    if "elsewhere.example" in response.headers.get("Location", "").partition("?")[0]:
        return "led to another site"
    size = 0 if response.streaming else len(response.content)
    return f"took {trips} round trips" if trips > MOST_TRIPS else f"sent {size} bytes" if size > MOST_BYTES else ""


def says_something(response: Any) -> bool:
    """A sentence for people; for programs one with what to do."""
    if response.headers["Content-Type"].startswith("application/json"):
        error = response.json().get("error", {"message": response.json().get("message", "")})
        return bool(error["message"].strip())
    return bool(re.search(r"\w+ \w+.*[.?!]", text(response)))


def query_of(words: dict[str, str], *, repeated: bool = False) -> str:
    """``words``: word → its value as it stands in an address."""
    pairs = [f"{quote(word)}={value}" for word, value in words.items()]
    return "&".join(pairs * 2 if repeated else pairs)


def turns(place: int) -> tuple[str, ...]:
    """A fifth of what is hostile, another fifth at the next address."""
    return WHAT[place % 5 :: 5]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_query_string_breaks_any_address(
    part: int, root: Client, shop: Shop, read: set[str], round_trips: Count
) -> None:
    found: dict[str, str] = {}

    def ask(address: str, query: str, what: str) -> None:
        answers: list[Any] = []
        trips = round_trips(lambda: answers.append(root.get(f"{address}?{query}")))
        if problem := wrong(answers[0], trips):
            found[f"{address}: {what}"] = problem

    for place, address in enumerate(asked(shop)[part::PARTS]):
        read.clear()
        ask(address, "", "nothing at all")
        words = known = frozenset(read)
        for what in turns(place):  # what is read only where something else is given is seen on the way
            ask(address, query_of(dict.fromkeys(sorted(words), HOSTILE[what]), repeated=True), what)
            words = known | read
        for number, word in enumerate(sorted(words)):
            what = WHAT[(place + number) % len(WHAT)]
            ask(address, query_of({word: HOSTILE[what]}), f"{word}: {what}")

    assert found == {}


def test_no_form_breaks_any_address(root: Client, shop: Shop, read: set[str], round_trips: Count) -> None:
    found: dict[str, str] = {}

    def send(address: str, body: str, what: str) -> None:
        answers: list[Any] = []
        form = {"content_type": "application/x-www-form-urlencoded"}
        trips = round_trips(lambda: answers.append(root.post(address, body, headers={"accept": "text/html"}, **form)))
        if problem := wrong(answers[0], trips):
            found[f"{address}: {what}"] = problem

    for place, address in enumerate(each for each in asked(shop) if each.startswith("/dashboard/")):
        read.clear()
        send(address, "", "nothing at all")
        for what in turns(place):
            send(address, query_of(dict.fromkeys(sorted(read), HOSTILE[what]), repeated=True), what)

    assert found == {}


def test_the_cursor_of_another_list_breaks_none(root: Client, shop: Shop) -> None:
    shop.many_dead(3)
    shop.many(3)
    lists = [f"/dashboard/{each}" for each in ("jobs/?limit=1&state=ready", "dead/?limit=1")]
    cursors = [_cursor_of(root.get(each)) for each in lists]
    assert len(set(cursors)) == len(lists)

    lists += [
        "/dashboard/jobs/?limit=1",
        "/dashboard/audit/?",
        "/dashboard/workflows/?",
        "/dashboard/jobs/?pool=nothing",
        "/api/v1/jobs?limit=1",
    ]
    answers = {(each, cursor): root.get(f"{each}&cursor={quote(cursor)}") for each in lists for cursor in cursors}

    assert {asked: problem for asked, answer in answers.items() if (problem := wrong(answer, 0))} == {}


def _cursor_of(page: Any) -> str:
    """What leads from a page to the one after it."""
    following = next(found["href"] for tag, found in tags(page) if tag == "a" and found.get("rel") == "next")
    return QueryDict(str(following).partition("?")[2])["cursor"]
