"""Scripts over what people change, in one slot, with its news: pool_set.lua, type_set.lua, pause_set.lua,
pool_create.lua, service_take.lua, pool_autoscale.lua."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import LeaseLost
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys
from tests.support.partition import NOW


@pytest.fixture
def keys(store: Store) -> SettingKeys:
    return SettingKeys(store.namespace)


def stored(store: Store, key: str) -> Any:
    return store.client.hgetall(key)


def news(store: Store, keys: SettingKeys) -> list[str]:
    entries: Any = store.client.xrange(keys.news)
    return [fields[b"topic"].decode() for _, fields in entries]


# pool_set.lua --------------------------------------------------------------------------------------------------------


def test_settings_are_changed_one_by_one_and_told(store: Store, keys: SettingKeys) -> None:
    assert store.run("pool_set", keys, ["a:slots", "3", "a:max_running", "9"]) == [b"", b""]
    assert store.run("pool_set", keys, ["a:slots", "4", "b:slots", "1"]) == [b"3", b""]
    assert stored(store, keys.pools) == {b"a:slots": b"4", b"a:max_running": b"9", b"b:slots": b"1"}

    assert store.run("pool_set", keys, ["a:slots", ""]) == [b"4"]
    assert stored(store, keys.pools) == {b"a:max_running": b"9", b"b:slots": b"1"}
    assert news(store, keys) == ["pools"] * 3


def test_what_is_so_already_is_no_news(store: Store, keys: SettingKeys) -> None:
    store.run("pool_set", keys, ["a:slots", "3"])
    store.run("pool_set", keys, ["a:slots", "3", "b:slots", ""])

    assert news(store, keys) == ["pools"]


# type_set.lua --------------------------------------------------------------------------------------------------------


def type_set(store: Store, keys: SettingKeys, overrides: str, disabled: str = "") -> Any:
    return store.run("type_set", keys, type="mail", overrides=overrides, disabled=disabled)


def test_overrides_are_stored_and_leave_pauses_alone(store: Store, keys: SettingKeys) -> None:
    assert type_set(store, keys, "{}") == 0
    assert (stored(store, keys.types), stored(store, keys.pauses)) == ({b"mail": b"{}"}, {})

    assert type_set(store, keys, "") == 0
    assert stored(store, keys.types) == {}
    assert news(store, keys) == ["types", "types"]


def test_a_disabled_type_is_paused_until_it_is_enabled(store: Store, keys: SettingKeys) -> None:
    assert type_set(store, keys, "{1}", "1") == 1
    assert stored(store, keys.pauses) == {b"disabled:mail": b"1", b"version": b"1"}
    assert type_set(store, keys, "{2}", "1") == 0, "it was so before"

    assert type_set(store, keys, "") == 2
    assert stored(store, keys.pauses) == {b"version": b"2"}
    assert news(store, keys).count("pauses") == 2


# pause_set.lua -------------------------------------------------------------------------------------------------------


def pause_set(store: Store, keys: SettingKeys, pause: str, scope: str = "pool:a", only: str = "") -> Any:
    return store.run("pause_set", keys, scope=scope, pause=pause, only=only)


def test_each_change_of_a_pause_is_a_new_version_and_news(store: Store, keys: SettingKeys) -> None:
    assert pause_set(store, keys, "one") == [1, b""]
    assert pause_set(store, keys, "two") == [2, b"one"]
    assert pause_set(store, keys, "all", "everything") == [3, b""]
    assert stored(store, keys.pauses) == {b"pool:a": b"two", b"everything": b"all", b"version": b"3"}

    assert pause_set(store, keys, "") == [4, b"two"]
    assert stored(store, keys.pauses) == {b"everything": b"all", b"version": b"4"}
    assert news(store, keys) == ["pauses"] * 4


def test_what_is_so_already_makes_no_version(store: Store, keys: SettingKeys) -> None:
    pause_set(store, keys, "one")

    assert pause_set(store, keys, "one") == [1, b"one"]
    assert pause_set(store, keys, "", "pool:b") == [1, b""]
    assert news(store, keys) == ["pauses"]


def test_a_pause_that_was_renewed_is_not_lifted_for_the_old_one(store: Store, keys: SettingKeys) -> None:
    pause_set(store, keys, "new")

    assert pause_set(store, keys, "", only="old") == [1, b"new"]
    assert pause_set(store, keys, "", only="new") == [2, b"new"]


# pool_create.lua -----------------------------------------------------------------------------------------------------


def create(store: Store, keys: SettingKeys, seen: int, versions: str = "{}") -> Any:
    return store.run("pool_create", keys, pool="a", versions=versions, seen=seen, written=2)


def test_a_pool_comes_into_being_once(store: Store, keys: SettingKeys) -> None:
    assert create(store, keys, 0, "first") == 0
    assert create(store, keys, 0, "second") == 0
    assert stored(store, keys.topology) == {b"a": b"first"}
    assert news(store, keys) == ["topology"], "nobody is told of a pool that is there already"


def test_the_newest_format_that_was_written_is_known(store: Store, keys: SettingKeys) -> None:
    create(store, keys, 0)
    assert store.client.get(keys.format) == b"2"

    store.client.set(keys.format, 3)
    create(store, keys, 0)
    assert store.client.get(keys.format) == b"3"


def test_older_code_that_listens_is_told_of_a_newer_format(store: Store, keys: SettingKeys) -> None:
    store.client.hset(keys.topology, "a", "{}")

    create(store, keys, 0)
    create(store, keys, 0)

    assert news(store, keys) == ["topology"]


def test_no_pool_comes_into_being_while_its_partitions_were_told_something_older(
    store: Store, keys: SettingKeys
) -> None:
    pause_set(store, keys, "all", "everything")

    assert create(store, keys, 0) == 1
    assert stored(store, keys.topology) == {}
    assert create(store, keys, 1) == 1
    assert stored(store, keys.topology) == {b"a": b"{}"}


# service_take.lua and pool_autoscale.lua -----------------------------------------------------------------------------


def take(store: Store, keys: SettingKeys, holder: str, token: str, now: int = NOW) -> Any:
    service = {"service": "autoscaler", "holder": holder, "token": token, "ttl": 1_000}
    return store.run("service_take", keys, given_now=now, **service)


def scale(store: Store, keys: SettingKeys, token: str, slots: str = "7", now: int = NOW) -> Any:
    decided = {"pool": "a", "decisions": "packed", "slots": slots}
    return store.run("pool_autoscale", keys, given_now=now, token=token, **decided)


def test_the_right_to_a_service_is_kept_by_renewing_it_and_taken_when_it_is_over(
    store: Store, keys: SettingKeys
) -> None:
    assert take(store, keys, "one", "t1") == [b"t1", b"one", NOW + 1_000]
    assert take(store, keys, "two", "t2", NOW + 500) == [b"", b"one", NOW + 1_000]
    assert take(store, keys, "one", "t3", NOW + 900) == [b"t1", b"one", NOW + 1_900]
    assert take(store, keys, "two", "t4", NOW + 1_900) == [b"t4", b"two", NOW + 2_900]


def test_a_right_from_before_the_clock_was_set_back_binds_nobody(store: Store, keys: SettingKeys) -> None:
    take(store, keys, "one", "t1", NOW + 3_600_000)

    assert take(store, keys, "two", "t2", NOW)[0] == b"t2"


def test_a_right_that_cannot_be_read_is_free(store: Store, keys: SettingKeys) -> None:
    store.client.hset(keys.services, "autoscaler", b"\xc1")

    assert take(store, keys, "one", "t1")[0] == b"t1"


def test_a_decision_is_written_with_its_effect_and_its_news(store: Store, keys: SettingKeys) -> None:
    take(store, keys, "one", "t1")

    assert scale(store, keys, "t1") == b"ok"
    assert stored(store, keys.scalings) == {b"a": b"packed"}
    assert stored(store, keys.pools) == {b"a:scaled_to": b"7"}
    assert news(store, keys) == ["pools"]

    scale(store, keys, "t1", "")
    assert news(store, keys) == ["pools"], "nothing was changed"


@pytest.mark.parametrize(("token", "now"), [("t2", NOW), ("", NOW), ("t1", NOW + 1_000)])
def test_nobody_writes_a_decision_without_the_right(store: Store, keys: SettingKeys, token: str, now: int) -> None:
    take(store, keys, "one", "t1")

    with pytest.raises(LeaseLost):
        scale(store, keys, token, now=now)

    assert (stored(store, keys.scalings), stored(store, keys.pools)) == ({}, {})


@pytest.mark.parametrize("key", ["pools", "types", "pauses", "topology", "news", "services", "scalings"])
def test_nothing_is_written_where_a_key_is_of_the_wrong_type(store: Store, keys: SettingKeys, key: str) -> None:
    store.client.set(getattr(keys, key), "x")
    calls = {
        "pools": lambda: store.run("pool_set", keys, ["a:slots", "3"]),
        "types": lambda: type_set(store, keys, "{}", "1"),
        "pauses": lambda: pause_set(store, keys, "one"),
        "topology": lambda: create(store, keys, 0),
        "news": lambda: type_set(store, keys, "{}", "1"),
        "services": lambda: scale(store, keys, "t1"),
        "scalings": lambda: scale(store, keys, "t1"),
    }

    with pytest.raises(Exception, match="WRONGTYPE"):
        calls[key]()

    assert store.client.keys(f"{store.namespace}:*") == [getattr(keys, key).encode()]
