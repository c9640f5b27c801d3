"""holder_take.lua: a name is claimed by compare-and-set."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.store.connection import Store
from jobs.store.keys import HolderKeys


@pytest.fixture
def keys(store: Store) -> HolderKeys:
    return HolderKeys(store.namespace, "ids", "name")


def take(store: Store, keys: HolderKeys, value: str, expected: str = "") -> Any:
    return store.run("holder_take", keys, name="name", value=value, expected=expected)


def holders(store: Store, keys: HolderKeys) -> Any:
    return store.client.hgetall(keys.holders)


@pytest.mark.parametrize(
    ("holder", "expected", "reply", "after"),
    [
        pytest.param(None, "", [b"1", b"me"], b"me", id="a free name is claimed"),
        pytest.param(b"me", "", [b"1", b"me"], b"me", id="a name that is ours stays ours"),
        pytest.param(b"other", "", [b"0", b"other"], b"other", id="a held name is refused"),
        pytest.param(b"other", "other", [b"1", b"me"], b"me", id="a name is taken over from whom we expect"),
        pytest.param(b"third", "other", [b"0", b"third"], b"third", id="and from nobody else"),
        pytest.param(None, "other", [b"0", b""], None, id="a name that was given free meanwhile is looked at again"),
        pytest.param(b"me", "other", [b"1", b"me"], b"me", id="a take-over that was sent before is found"),
    ],
)
def test_taking(
    store: Store, keys: HolderKeys, holder: bytes | None, expected: str, reply: list[bytes], after: bytes | None
) -> None:
    if holder:
        store.client.hset(keys.holders, "name", holder)

    assert take(store, keys, "me", expected) == reply
    assert holders(store, keys) == ({b"name": after} if after else {})
