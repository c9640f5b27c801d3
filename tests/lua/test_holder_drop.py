"""holder_drop.lua: a name is given free by compare-and-set."""

from __future__ import annotations

import pytest

from jobs.store.connection import Store
from jobs.store.keys import HolderKeys


@pytest.mark.parametrize(
    ("holder", "reply", "after"),
    [
        pytest.param(b"me", 1, {}, id="ours is given free"),
        pytest.param(b"other", 0, {b"name": b"other"}, id="anothers stays"),
        pytest.param(None, 0, {}, id="a free one stays free"),
    ],
)
def test_dropping(store: Store, holder: bytes | None, reply: int, after: dict[bytes, bytes]) -> None:
    keys = HolderKeys(store.namespace, "unique", "name")
    if holder:
        store.client.hset(keys.holders, "name", holder)

    assert store.run("holder_drop", keys, name="name", expected="me") == reply
    assert store.client.hgetall(keys.holders) == after
