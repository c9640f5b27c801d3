"""line_page.lua: pages of a line that stay stable while members come and go."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine.listing import _LineKeys
from jobs.store.connection import Store

LINE = {"a": 1, "b": 2, "c": 2, "d": 2.25, "e": 3}


@pytest.fixture
def key(store: Store, namespace: str) -> str:
    key = f"{namespace}:{{p.1.0}}:ready"
    store.client.zadd(key, LINE)
    return key


def page(
    store: Store, key: str, after: tuple[str, str] = ("", ""), *, limit: int = 10, descending: bool = False
) -> Any:
    reply = store.run(
        "line_page",
        _LineKeys(key),
        after_score=after[0],
        after_id=after[1],
        limit=limit,
        descending="1" if descending else "",
    )
    return [(member.decode(), float(score)) for member, score in zip(reply[::2], reply[1::2], strict=True)]


def members(found: list[tuple[str, float]]) -> str:
    return "".join(member for member, _ in found)


def test_a_page_has_members_and_scores_in_order(store: Store, key: str) -> None:
    assert page(store, key) == list(LINE.items())
    assert page(store, key, descending=True) == list(LINE.items())[::-1]
    assert page(store, key, limit=2) == [("a", 1), ("b", 2)]
    assert page(store, key, limit=2, descending=True) == [("e", 3), ("d", 2.25)]


@pytest.mark.parametrize(
    ("after", "forward", "backward"),
    [
        (("1", "a"), "bcde", ""),
        (("2", "b"), "cde", "a"),
        (("2", "c"), "de", "ba"),
        (("2.25", "d"), "e", "cba"),
        (("3", "e"), "", "dcba"),
        pytest.param(("2", "bb"), "cde", "ba", id="a member that is gone, between others of its score"),
        pytest.param(("2.1", "x"), "de", "cba", id="a member that is gone, of a score of its own"),
        pytest.param(("0", "x"), "abcde", "", id="before all"),
        pytest.param(("9", "x"), "", "edcba", id="after all"),
    ],
)
def test_a_page_begins_just_after_a_member(
    store: Store, key: str, after: tuple[str, str], forward: str, backward: str
) -> None:
    assert members(page(store, key, after)) == forward
    assert members(page(store, key, after, descending=True)) == backward


def test_an_empty_line_has_an_empty_page(store: Store, namespace: str) -> None:
    empty = f"{namespace}:{{p.1.0}}:dead"

    for descending in (False, True):
        assert page(store, empty, descending=descending) == []
        assert page(store, empty, ("1", "a"), descending=descending) == []


def test_members_are_compared_byte_by_byte_as_the_line_does(store: Store, namespace: str) -> None:
    key = f"{namespace}:{{p.1.0}}:cancelled"
    ids = ["-", "A", "Z", "a", "aa", "b", "{", "é", "日本"]
    store.client.zadd(key, dict.fromkeys(ids, 5))

    for position, job_id in enumerate(ids):
        assert [member for member, _ in page(store, key, ("5", job_id))] == ids[position + 1 :]
        assert [member for member, _ in page(store, key, ("5", job_id), descending=True)] == ids[:position][::-1]
