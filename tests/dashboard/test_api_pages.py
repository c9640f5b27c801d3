"""Pages of lists: bounded in bytes as in items, whole all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dashboard.api import jobs, paging
from jobs import api
from jobs.models import Schedule
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Program
from tests.support.runs import Runs

BYTES = 30_000
LARGE = "x" * 9_000


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_BYTES", BYTES)


def numbers(until: int, length: int) -> list[dict[str, Any]]:
    return [{"number": number, "text": "x" * length} for number in range(until)]


class Reads:
    """A list of documents as something that is read from, and how much was asked of it."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.documents = documents
        self.asked = list[int]()

    def __call__(self, cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        self.asked.append(limit)
        start = int(cursor or 0)
        found = self.documents[start : start + limit]
        return found, str(start + limit) if start + limit < len(self.documents) else None


@pytest.mark.parametrize("length", [0, 10, 300, 3_000, 29_000, 100_000])
@pytest.mark.parametrize("size", [1, 7, 50, 1_000])
def test_pages_hold_everything_once_and_each_is_bounded(length: int, size: int) -> None:
    reads, seen, cursor = Reads(numbers(120, length)), list[dict[str, Any]](), ""
    while True:
        page = paging.page(reads, cursor, size)
        seen += page["items"]
        assert 1 <= len(page["items"]) <= size
        assert len(page["items"]) == 1 or sum(len(json.dumps(item)) for item in page["items"]) <= BYTES * 1.1
        if page["next_cursor"] is None:
            break
        cursor = page["next_cursor"]

    assert seen == reads.documents


def test_a_page_of_small_ones_takes_two_reads() -> None:
    reads = Reads(numbers(1_500, 0))

    page = paging.page(reads, "", 1_000)

    assert (len(page["items"]), page["next_cursor"], reads.asked) == (1_000, "1000", [50, 950])


def test_a_list_that_is_looked_through_no_further_is_asked_no_more() -> None:
    def read(cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        assert cursor is None
        return [{"id": "a"}], "later"

    assert paging.page(read, "", 50) == {"items": [{"id": "a"}], "next_cursor": "later"}


@pytest.mark.django_db
def test_what_is_read_again_because_it_is_large_is_looked_at_once(
    root: Program, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LOOKED_AT", 10)
    for number in range(12):
        api.enqueue("http.greet", {"name": LARGE}, tags=["even"] if number % 2 == 0 else [])

    assert len(root.get("jobs", tag="even").document["items"]) == 3


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["jobs", "dlq", "schedules", "workflows"])
def test_each_list_is_cut_where_its_items_are_large(address: str, root: Program, shop: Any) -> None:
    for number in range(7):
        match address:
            case "jobs":
                api.enqueue("http.greet", {"name": LARGE})
            case "dlq":
                error = {"type": "ValueError", "message": "x", "traceback": LARGE[::2]}  # told by its attempt, too
                shop.dead(error=error)
            case "schedules":
                Schedule.objects.create(
                    name=f"s{number}", job_type="http.greet", cron="0 5 * * *", payload={"name": LARGE}
                )
            case "workflows":
                Runs(shop.engine).start(
                    {"key": "a", "type": "", "approval": "Go?"}, id=f"r{number}", payload={"a": LARGE}
                )
    seen, pages, cursor = set[str](), 0, {}
    while pages < 10:
        answer = root.get(address, limit=1_000, **cursor).document
        assert len(json.dumps(answer)) < BYTES * 1.2
        seen |= {item.get("id") or item["name"] for item in answer["items"]}
        pages += 1
        if answer["next_cursor"] is None:
            break
        cursor = {"cursor": answer["next_cursor"]}

    assert (len(seen), pages) == (7, 3)
