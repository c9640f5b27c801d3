"""job_progress.lua: leased → leased."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, held, record


def test_the_holder_says_how_far_it_is(partition: Partition) -> None:
    before = {"states": {"a": held(), "b": held()}, "leased": {"a": NOW, "b": NOW}}
    partition.put({**before, "progress": {"a": "old", "c": "other"}})

    assert partition.run("job_progress", "a", "token", "new", "b", "token", "first") == ["ok", "ok"]
    told = NOW.to_bytes(8, "big")
    assert partition.store.client.hgetall(partition.keys.progress) == {
        b"a": told + b"new",
        b"b": told + b"first",
        b"c": b"other",
    }


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="taken back"),
        pytest.param(record("succeeded", token="token"), id="ended"),
    ],
)
def test_nobody_else_may(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert partition.run("job_progress", "a", "token", "new") == ["lost"]
    assert partition.state() == before | {"clock": NOW}
