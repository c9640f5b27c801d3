"""job_progress.lua: leased → leased."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import LeaseLost
from tests.support.partition import NOW, Partition, held, record


def test_the_holder_says_how_far_it_is(partition: Partition) -> None:
    before = {"states": {"a": held()}, "leased": {"a": NOW}}
    partition.put({**before, "progress": {"a": "old", "b": "other"}})

    assert partition.run("job_progress", id="a", token="token", packed="new") == "ok"
    assert partition.state() == {**before, "progress": {"a": "new", "b": "other"}}


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

    with pytest.raises(LeaseLost):
        partition.run("job_progress", id="a", token="token", packed="new")

    assert partition.state() == before
