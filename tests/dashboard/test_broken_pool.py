"""A key of one pool that went bad is told of, and takes away no page that can do without it."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.overall import SPOILT
from jobs.core.job import Route
from jobs.store.keys import SettingKeys, partition_keys
from tests.dashboard.browsing import text
from tests.dashboard.seeding import Shop
from tests.dashboard.test_cost import PAGES


def spoil(shop: Shop, key: str) -> None:
    """Puts something else where a key of the pool bad is."""
    shop.ready(pool="bad")
    store = shop.engine.store
    spoilt = getattr(partition_keys(store.namespace, Route("bad", 1, 0)), key)
    store.client.delete(spoilt)
    store.client.set(spoilt, "x")


FOR_MACHINES = ("/metrics", "/dashboard/snapshot/")


def test_every_page_says_so(shop: Shop, administrator: Client) -> None:
    spoil(shop, "ready")

    for path in (*PAGES, *FOR_MACHINES):
        answer = administrator.get(path)
        assert answer.status_code == 200, path
        assert SPOILT in text(answer) or path in FOR_MACHINES


def test_without_the_history_the_present_is_shown(shop: Shop, administrator: Client) -> None:
    spoil(shop, "seconds")

    assert SPOILT not in text(administrator.get("/dashboard/jobs/"))
    assert SPOILT in text(administrator.get("/dashboard/charts/"))


@pytest.mark.parametrize("page", ["audit", "doctor"])
def test_those_that_do_not_need_it_are_shown(page: str, shop: Shop, administrator: Client) -> None:
    spoil(shop, "ready")

    assert "cannot be shown" not in text(administrator.get(f"/dashboard/{page}/"))


def test_settings_of_a_pool_that_cannot_be_read_are_none(shop: Shop, administrator: Client) -> None:
    shop.ready(pool="bad")
    keys = SettingKeys(shop.engine.store.namespace)
    shop.engine.store.client.hset(keys.topology, "bad", "{")
    shop.engine.store.client.hset(keys.pools, mapping={"bad:slots": "{", b"\xff:slots": "3"})

    assert SPOILT not in text(administrator.get("/dashboard/pools/"))
