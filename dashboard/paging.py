"""A long list that was read whole, shown page by page. Lists of jobs are read by cursor, and never whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.formats import read_number

T = TypeVar("T")


@dataclass(frozen=True)
class PageOf(Generic[T]):
    """One page; ``previous_url`` and ``next_url`` are empty where there is none."""

    items: Sequence[T]
    number: int
    pages: int
    previous_url: str
    next_url: str


def page_of(items: Sequence[T], given: QueryDict, per_page: int, *, kept: Sequence[str] = ()) -> PageOf[T]:
    """The page whose number stands in the address as ``page``, or the nearest that there is.

    ``kept``: words of the address that other pages of the list have too.
    """
    pages = max(1, -(-len(items) // per_page))
    number = min(max(1, read_number(given.get("page", ""))), pages)

    def url(page: int) -> str:
        words = {word: value for word in kept if (value := given.get(word, "").strip())}
        return f"?{urlencode({**words, 'page': page})}" if 1 <= page <= pages else ""

    shown = items[(number - 1) * per_page : number * per_page]
    return PageOf(shown, number, pages, url(number - 1), url(number + 1))
