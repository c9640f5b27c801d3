"""Of many things that are dear to read only the last readings stay in memory."""

from __future__ import annotations

import gc
import weakref

import pytest
from django.test import Client

from dashboard import reads
from dashboard.kept import KeptOfEach
from jobs import api
from jobs.api import Point
from tests.dashboard.seeding import Shop


class Reading:
    """Something large."""


def test_of_many_things_the_last_ones_asked_for_are_kept_and_no_others() -> None:
    kept = KeptOfEach[str, Reading](60.0, most=2)
    first = kept.read("a", Reading)
    gone = weakref.ref(kept.read("b", Reading))

    assert kept.read("a", Reading) is first
    kept.read("c", Reading)
    gc.collect()

    assert gone() is None, "nobody had asked for it since"
    assert kept.read("a", Reading) is first


def test_whoever_looks_at_pool_after_pool_leaves_a_few_readings_behind(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: weakref.WeakSet[Reading] = weakref.WeakSet()

    class Points(list[Point], Reading):
        def __init__(self, *_: object) -> None:
            made.add(self)

        __hash__ = object.__hash__  # type: ignore[assignment]  # each is itself

    monkeypatch.setattr(api.stats, "points", Points)
    for number in range(12):
        shop.ready(pool=f"pool-{number}")
        assert viewer.get(f"/dashboard/charts/?pool=pool-{number}&range=30d").status_code == 200
    gc.collect()

    assert 1 <= len(made) <= reads.of_pools.READINGS_KEPT
