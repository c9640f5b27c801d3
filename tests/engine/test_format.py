"""A process that meets what newer code has stored takes nothing and makes nothing, and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.engine import Engine
from jobs.exceptions import StoreUnavailable
from jobs.services.promoter import Promoter
from jobs.store.keys import SettingKeys
from jobs.store.topology import FORMAT
from tests.support.steps import Steps


@pytest.fixture
def newer(engine: Engine) -> Engine:
    """Newer code has written into the same store."""
    Steps(engine).enqueue()
    engine.store.client.set(SettingKeys(engine.store.namespace).format, FORMAT + 1)
    return Engine(engine.store, engine.settings)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda engine: Steps(engine).enqueue(), id="a producer"),
        pytest.param(lambda engine: engine.topology.pools(fresh=True), id="a fetcher"),
        pytest.param(lambda engine: Promoter(engine).tick(), id="a service"),
        pytest.param(lambda engine: engine.pools.all(), id="a page"),
    ],
)
def test_whoever_acts_is_told_what_to_do(newer: Engine, act: Callable[[Engine], Any]) -> None:
    with pytest.raises(StoreUnavailable, match=f"format {FORMAT + 1}; this version reads up to {FORMAT}") as refused:
        act(newer)
    assert "deploy" in refused.value.fix


def test_a_store_that_says_nothing_is_marked_by_the_first_who_writes(engine: Engine) -> None:
    Steps(engine).enqueue()
    key = SettingKeys(engine.store.namespace).format
    engine.store.client.delete(key)

    Steps(Engine(engine.store, engine.settings)).enqueue()

    assert engine.store.client.get(key) == str(FORMAT).encode()
