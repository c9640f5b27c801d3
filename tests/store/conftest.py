from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jobs.store.connection import Store

QUICK = 0.3
"""Patience of stores whose server stays away, seconds."""


@pytest.fixture
def make_store(namespace: str) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def make(url: str, patience: float = QUICK) -> Store:
        made.append(Store(url, namespace, patience=patience))
        return made[-1]

    yield make
    for store in made:
        store.close()
